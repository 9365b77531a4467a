"""The comparison: every method of the table × graphs × models × shares of labels, on the same draws.

It is one more study of the laboratory: `cells` says what a row depends on, `ground` what methods compete on, `measure`
how they are judged. What is shown (`summary`, `figure`, `page`) is made from rows and from nothing else.
"""
