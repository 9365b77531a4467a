"""Labels as evidence in a graph that changes: the labels counted around nodes, and the entries that a label affects.

An *entry* is a labelled node, with the labels around it that are its evidence. A label affects an entry if it is
evidence for it. A *slot* is the row of a node.

The shares that a node passes on are multiples of 2⁻³⁰, so that their sums are exact: adding or subtracting a label
gives the same bits as counting again. Means over neighbours are summed in the order of the neighbours, as in a batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from napsets.kernels._jit import borrowed, jit, part, prefetch
from napsets.kernels.growing import AHEAD, ask_for

_UNIT = 2.0**-30
#: Slots whose entries are asked for before they are listed.
_WAITING = 256


class SlotLabels(NamedTuple):
    """The labels, by slot."""

    #: int8 of shape (slots,), or of more bits for more labels. 0 without a label, y + 1 for label y in the reference,
    #: −(y + 1) for one that is held out.
    code: Any
    reference_degree: Any  #: int32 of shape (slots,). How many neighbours are in the reference.
    entry_of: Any  #: int64 of shape (slots,). The entry of each labelled node, −1 elsewhere.
    crowd_limit: int  #: A node with more reference neighbours than this passes on no labels but theirs.


class Entries(NamedTuple):
    """The labels counted around the labelled nodes, one entry each."""

    #: float64 of shape (entries, classes). Labels counted among the neighbours, and among theirs.
    near: Any
    far: Any
    #: bool of shape (entries,). Entries whose counts must be renewed, and entries whose scores alone must be.
    recount: Any
    rescore: Any


class Scratch(NamedTuple):
    """Space for a list of the entries that a label affects, which need not be cleared."""

    places: Any  #: int64 of shape (entries,). The place of an entry in the list, if it is listed.
    entries: Any  #: int64 of shape (entries,). The list.
    #: float64 of shape (entries,). What is added to the counts of each.
    near: Any
    far: Any


@part
def _share(size):
    """Return the share of each label around it that a node with so many neighbours passes on."""
    return np.floor(1.0 / (_UNIT * max(size, 1))) * _UNIT


@jit
def count_around(slots, rows, slot_labels, outputs, means, stale, tables, scratch, starts):
    """Count the labels around some slots, and average the model's outputs there; see `Evidence`.

    The tables are those counted near and far of the reference alone, near and far of all labels, and the average.
    Unless `starts` is empty, it is written, and the held-out entries that a label of each slot affects are returned
    with what it adds to their counts near and far.
    """
    listing, total = starts.size > 0, 0
    waiting = np.empty(2 * _WAITING if listing else 0)
    entries, near, far = np.empty(64, np.int64), np.empty(64), np.empty(64)
    for i in range(slots.size):
        count = _count_around(slots[i], i, waiting, rows, slot_labels, outputs, means, stale, tables, scratch)
        if listing:
            starts[i] = total
            if slot_labels.code[slots[i]] > 0:  # no candidate replaces a label of the reference
                count = 0
            while total + count > entries.size:
                entries = np.concatenate((entries, entries))
                near, far = np.concatenate((near, near)), np.concatenate((far, far))
            for k in range(count):
                entries[total], near[total], far[total] = scratch.entries[k], scratch.near[k], scratch.far[k]
                total += 1
    if listing:
        starts[slots.size] = total
    return entries[:total], near[:total], far[:total]


@part
def _count_around(slot, i, waiting, rows, slot_labels, outputs, means, stale, tables, scratch):
    """Fill the i-th row of the tables, and return how many entries are listed; none if `waiting` has no space.

    The entries of far slots are asked for, and listed later: waiting for each in turn would take longer.
    """
    rows, slot_labels, scratch = borrowed(rows), borrowed(slot_labels), borrowed(scratch)
    starts, sizes, columns = rows.starts, rows.sizes, rows.columns
    codes, entry_of = slot_labels.code, slot_labels.entry_of
    near, far, all_near, all_far, around = tables[0, i], tables[1, i], tables[2, i], tables[3, i], tables[4, i]
    for c in range(near.size):
        near[c] = far[c] = all_near[c] = all_far[c] = 0.0
    count, filled, listing, start = 0, 0, waiting.size > 0, starts[slot]
    for j in range(start, start + sizes[slot]):
        if (j - start) % AHEAD == 0:
            some = columns[j : min(j + AHEAD, start + sizes[slot])]
            ask_for(some, starts, sizes, columns)
            for other in some:
                prefetch(means, other * near.size)
                prefetch(means, (other + 1) * near.size - 1)
        between = columns[j]
        code = codes[between]
        if code > 0:
            near[code - 1] += 1.0
        elif code < 0:
            all_near[-code - 1] += 1.0
            if listing:
                count = _add_affected(entry_of[between], 1.0, 0.0, count, scratch)
        share = _share(sizes[between])
        crowded = slot_labels.reference_degree[between] > slot_labels.crowd_limit
        first = starts[between]
        for k in range(first, first + sizes[between]):
            other = columns[k]
            code = codes[other]
            if code == 0 or other == slot:
                continue
            if code > 0:
                far[code - 1] += share
            elif not crowded:
                all_far[-code - 1] += share
                if listing:
                    if filled == waiting.size:
                        count, filled = _add_affected_far(waiting[:filled], entry_of, count, scratch), 0
                    prefetch(entry_of, other)
                    waiting[filled], waiting[filled + 1] = other, share
                    filled += 2
    count = _add_affected_far(waiting[:filled], entry_of, count, scratch)
    for c in range(near.size):
        all_near[c] += near[c]
        all_far[c] += far[c]
    _average(slot, rows, outputs, means, stale, around)
    return count


@part
def _add_affected_far(waiting, entry_of, count, scratch):
    """List the entries of slots, each followed by its share, and return how many are listed."""
    for i in range(0, waiting.size, 2):
        count = _add_affected(entry_of[int(waiting[i])], 0.0, waiting[i + 1], count, scratch)
    return count


@part
def _average(slot, rows, outputs, means, stale, around):
    """Write the mean of the outputs of the neighbours and of their neighbours."""
    rows, classes, size = borrowed(rows), outputs.shape[1], rows.sizes[slot]
    if size == 0:
        for c in range(classes):
            own = np.float64(outputs[slot, c])
            around[c] = 0.5 * (own + own)
        return
    _renew(slot, rows, outputs, means, stale)
    around[:] = 0.0
    for j in range(rows.starts[slot], rows.starts[slot] + size):
        other = rows.columns[j]
        _renew(other, rows, outputs, means, stale)
        for c in range(classes):
            around[c] += means[other, c]
    for c in range(classes):
        around[c] = 0.5 * (means[slot, c] + around[c] / size)


@part
def _renew(slot, rows, outputs, means, stale):
    """Recompute the mean over the neighbours of a slot if it is stale."""
    if stale[slot]:
        size = rows.sizes[slot]
        means[slot] = 0.0
        for j in range(rows.starts[slot], rows.starts[slot] + size):
            other = rows.columns[j]
            for c in range(outputs.shape[1]):
                means[slot, c] += outputs[other, c]
        for c in range(outputs.shape[1]):
            means[slot, c] /= size
        stale[slot] = False


# -- which entries a label affects -------------------------------------------------------------------------------------


@part
def _add_affected(entry, near, far, count, scratch):
    """Add to what a label adds to the counts of one entry, and return how many entries are listed."""
    place = scratch.places[entry]
    if place >= count or scratch.entries[place] != entry:
        place = count
        scratch.places[entry] = place
        scratch.entries[place] = entry
        scratch.near[place] = 0.0
        scratch.far[place] = 0.0
        count += 1
    scratch.near[place] += near
    scratch.far[place] += far
    return count


@part
def _list_affected(slot, reference, rows, slot_labels, scratch):
    """List the entries that the label of a slot affects: any for a reference label, else those held out."""
    count = 0
    start = rows.starts[slot]
    for j in range(start, start + rows.sizes[slot]):
        between = rows.columns[j]
        code = slot_labels.code[between]
        if code < 0 or (reference and code > 0):
            count = _add_affected(slot_labels.entry_of[between], 1.0, 0.0, count, scratch)
        if not reference and slot_labels.reference_degree[between] > slot_labels.crowd_limit:
            continue
        share = _share(rows.sizes[between])
        first = rows.starts[between]
        for k in range(first, first + rows.sizes[between]):
            other = rows.columns[k]
            code = slot_labels.code[other]
            if other != slot and (code < 0 or (reference and code > 0)):
                count = _add_affected(slot_labels.entry_of[other], 0.0, share, count, scratch)
    return count


@jit
def shift_label(slot, label, sign, reference, rows, slot_labels, entries, scratch):
    """Add a label to the counts of every entry it affects, or subtract it.

    Where a node becomes crowded, or is no longer, entries are marked to be counted again.
    """
    for i in range(_list_affected(slot, reference, rows, slot_labels, scratch)):
        entry = scratch.entries[i]
        entries.near[entry, label] += sign * scratch.near[i]
        entries.far[entry, label] += sign * scratch.far[i]
        entries.rescore[entry] = True
    if reference:
        start = rows.starts[slot]
        for j in range(start, start + rows.sizes[slot]):
            other = rows.columns[j]
            before = slot_labels.reference_degree[other]
            slot_labels.reference_degree[other] = before + sign
            if (before > slot_labels.crowd_limit) != (before + sign > slot_labels.crowd_limit):
                _mark(other, 1, rows, slot_labels, entries.recount)


@part
def _mark(slot, hops, rows, slot_labels, recount):
    """Mark the entries up to two hops from a slot to be counted again."""
    entry = slot_labels.entry_of[slot]
    if entry >= 0:
        recount[entry] = True
    start = rows.starts[slot]
    for j in range(start, start + rows.sizes[slot]):
        other = rows.columns[j]
        entry = slot_labels.entry_of[other]
        if entry >= 0:
            recount[entry] = True
        if hops == 2:
            first = rows.starts[other]
            for k in range(first, first + rows.sizes[other]):
                entry = slot_labels.entry_of[rows.columns[k]]
                if entry >= 0:
                    recount[entry] = True


@jit
def mark_changed_edges(slots, rows, slot_labels, recount, stale):
    """Note that edges at some slots were added or removed: recount reference neighbours, and mark entries around."""
    for slot in slots:
        degree = 0
        start = rows.starts[slot]
        for j in range(start, start + rows.sizes[slot]):
            degree += slot_labels.code[rows.columns[j]] > 0
        slot_labels.reference_degree[slot] = degree
        stale[slot] = True
        _mark(slot, 1, rows, slot_labels, recount)


@jit
def mark_changed_outputs(slots, rows, slot_labels, recount, stale):
    """Note that some slots have new outputs."""
    for slot in slots:
        start = rows.starts[slot]
        for j in range(start, start + rows.sizes[slot]):
            stale[rows.columns[j]] = True
        _mark(slot, 2, rows, slot_labels, recount)


@jit
def count_reference_degrees(slots, rows, reference_degree):
    """Count the reference neighbours of every slot; the slots of the reference are given."""
    for slot in slots:
        start = rows.starts[slot]
        for j in range(start, start + rows.sizes[slot]):
            reference_degree[rows.columns[j]] += 1


@jit
def fix_rows(model, around, alike, others, recalibration, exponents, fixed):
    """Write the part of the evidence that no label outside the reference changes, as `Evidence.fixed` adds it up.

    `model`, `around` and `alike` are logarithms of factors, of shape (rows, classes) and with one exponent each;
    `others` is log(1 + degree) of each row. The rows of `recalibration` are coefficients of the first two, of the last,
    and constants; there are none where there is no recalibration.
    """
    size, classes = model.shape
    added = np.empty(classes)
    for i in range(size):
        for c in range(classes):
            fixed[i, c] = exponents[0] * model[i, c] + exponents[1] * around[i, c]
            if exponents[2] != 0.0:
                fixed[i, c] += exponents[2] * alike[i, c]
        if recalibration.shape[0]:
            for c in range(classes):
                added[c] = recalibration[-1, c]
            for j in range(recalibration.shape[0] - 1):
                value = others[i]
                if j < classes:
                    value = model[i, j]
                elif j < 2 * classes:
                    value = around[i, j - classes]
                for c in range(classes):
                    added[c] += value * recalibration[j, c]
            for c in range(classes):
                fixed[i, c] += added[c]
        largest = fixed[i, 0]
        for c in range(1, classes):
            largest = max(largest, fixed[i, c])
        for c in range(classes):
            fixed[i, c] -= largest
