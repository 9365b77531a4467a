"""What tests of pages ask a browser."""

from __future__ import annotations

#: A page of A4 within its margins, in CSS pixels.
PAPER = {"width": 687, "height": 1000}

#: What sticks out of the card, table or page that holds it.
CUT_OFF = """() => [
  ...[...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1),
  ...[...document.querySelectorAll('.card')].filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1),
  ...[...document.querySelectorAll('td, th, dd, dt, p, h1, h2, h3, button, label')].filter(e => e.checkVisibility()
    && !e.closest('.hidden, .skip, thead, .numbers') && e.getBoundingClientRect().right > window.innerWidth + 1),
].map(e => e.outerHTML.slice(0, 120))"""
