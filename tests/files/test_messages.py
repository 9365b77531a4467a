"""What is wrong in a file is said with its line and node, and with what to do about it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from napsets.errors import FileFormatError
from napsets.files import Reading, read_inputs

#: Files that fit each other.
GOOD = {
    "edges": "source,target\nann,bob\nbob,cid\ncid,dan\n",
    "probabilities": "node,cat,dog\nann,0.5,0.5\nbob,0.2,0.8\ncid,0.9,0.1\ndan,0.3,0.7\n",
    "labels": "node,label\nann,cat\nbob,dog\n",
}

#: The file that is wrong, what stands in it, and parts of the message.
WRONG = [
    ("edges", "ann,bob\nbob,cid\n", "lacks source, target", "It has: ann, bob", "add --no-header"),
    ("edges", "src,dst\nann,bob\n", "must have the columns source, target", "add --rename OLD=source"),
    ("edges", "Source,Target\nann,bob\n", "If 'Source' is meant", "add --rename Source=source"),
    ("edges", "source;target\nann;bob\n", "separated by ';': add --separator ';'"),
    ("edges", "source\ttarget\nann\tbob\n", "add --separator tab"),
    ("edges", "source,target\nann,bob\nann,eve\n", "1 row of `edges`", "'eve'", "line 3", "--skip-unknown"),
    ("edges", "source,target\nann,\n", "must have an id in each row", "the column target", "line 2 of"),
    ("edges", 'source,target\n"",bob\n', "must have an id in each row", "the column source", "line 2 of"),
    ("edges", "source,target\nann,bob,cid\n", "as many cells in each row as its header", "3 cells where 2",
     "'ann,bob,cid'"),
    ("edges", "source,target\nann\n", "1 cells where 2 are expected: 'ann'"),
    ("edges", "", "must have a header and rows", "is empty"),
    ("edges", "\n\n", "must have a header and rows", "is empty"),
    ("edges", "source,target,source\nann,bob,bob\n", "must not repeat a column", "'source' more than once"),
    ("probabilities", "node,cat,dog\nann,0.5,half\nbob,0.2,0.8\ncid,0.9,0.1\n", "numbers in the column dog",
     "line 2 of",
     "(node 'ann') has 'half'", "Write a number there"),
    ("probabilities", "node,cat,dog\nann,0.5,0.5\n\nbob,NA,0.8\ncid,0.9,0.1\n", "line 4 of", "(node 'bob') has 'NA'"),
    ("probabilities", "node,cat,dog\nann,0.5,0.5\nbob,nan,0.8\n", "1 of the 2 rows",
     "line 3 (node 'bob') has nan in the "
     "column cat", "Write numbers there"),
    ("probabilities", "node,cat,dog\nann,0.5,0.5\nbob,,0.8\n", "no empty cell; the column cat has one in line 3 of",
     "(node 'bob')"),
    ("probabilities", "node,cat,dog\nann,0.5,0.4\n", "line 2 (node 'ann') sums to 0.9", "before softmax"),
    ("probabilities", "node,cat,dog\nann,1.5,-0.5\n", "line 2 (node 'ann') has a negative entry, -0.5"),
    ("probabilities", 'node,cat,dog\nann,"0,5","0,5"\n', "Write decimal points instead of decimal commas: 0.5"),
    ("probabilities", "node,cat,dog\nann,50%,50 %\n", "Write shares instead of percentages: 0.5"),
    ("probabilities", "node;cat;dog\nann;0,5;0,5\n", "separated by ';'"),
    ("probabilities", "node,cat,dog,split\nann,0.5,0.5,test\nbob,0.5,0.5,test\n", "add --ignore-columns split"),
    ("probabilities", "node,cat,dog\nann,0.5,0.5\nann,0.2,0.8\n", "each node once", "'ann'", "Keep one row"),
    ("probabilities", f"node,cat,dog\n{'x' * 1025},0.5,0.5\n", "ids of at most 1,024 bytes", "has 1,025"),
    ("probabilities", ",node,cat\n0,ann,1\n", "a name for each column", "index=False"),
    ("labels", "node, label\nann,cat\n", "If ' label' is meant", "--rename ' label=label'"),
    ("labels", "Node,label\nann,cat\n", "add --rename Node=node"),
    ("labels", "node,label\nann,cat\nbob,dgo\n", "first in line 3 (node 'bob')", "'dgo': did you mean 'dog'?"),
    ("labels", "node,label\nann,Cat\n", "'Cat': did you mean 'cat'?"),
    ("labels", "node,label\nann,cat\nbob, dog\n", "Remove the spaces around them: ' dog' should be 'dog'"),
    ("labels", "node,label\nann,1\nbob,2\n", "count the classes from 1: subtract 1"),
    ("labels", "node,label\nann,cow\n", "'cow'", "add --skip-unknown"),
    ("labels", "node,label\nann,cat\nbob,1\n", "class names ('cat', 'dog') or class numbers",
     "'1', first in line 3"),
    ("labels", "node,label\nann,cat\nbob,dog\nann,dog\n", "each node once", "repeats 1: 'ann', the first in line 4"),
    ("labels", "node,label\nann,cat\nzed,dog\n", "1 row of `labels`", "'zed'", "line 3"),
    ("labels", "node,label\nann ,cat\n", "'ann '", "remove the spaces around the ids: 'ann ' should be 'ann'"),
    ("labels", "node,label\nann,\n", "must have at least one label"),
]  # fmt: skip


def write(folder, changed=()):
    paths = {name: folder / f"{name}.csv" for name in GOOD}
    for name, text in (GOOD | dict(changed)).items():
        paths[name].write_text(text, encoding="utf-8")
    return paths


@pytest.mark.parametrize("case", WRONG, ids=lambda case: f"{case[0]}: {case[-1][:30]}")
def test_a_message_says_where_and_what_to_do(tmp_path, case):
    name, text, *parts = case
    paths = write(tmp_path, {name: text}.items())
    with pytest.raises(FileFormatError) as caught:
        read_inputs(*paths.values())
    message = str(caught.value)
    assert f"`{name}`" in message
    assert str(paths[name]) in message
    for part in parts:
        assert part in message


def test_files_that_fit_are_read(tmp_path):
    inputs = read_inputs(*write(tmp_path).values())
    assert inputs.truth.tolist() == [0, 1, -1, -1]


def test_rows_are_counted_as_the_file_shows_them(tmp_path):
    """Quoted line breaks, blank lines and a missing header are counted as an editor counts them."""
    paths = write(tmp_path, {"labels": 'node,label,text\nann,cat,"a\nb"\n\nbob,cow,c\n'}.items())
    with pytest.raises(FileFormatError, match=r"line 5 \(node 'bob'\)"):
        read_inputs(*paths.values())
    texts = {name: text.partition("\n")[2] for name, text in GOOD.items()}
    paths = write(tmp_path, (texts | {"labels": "ann,0\nbob,7\n"}).items())
    with pytest.raises(FileFormatError, match=r"line 2 \(node 'bob'\)"):
        read_inputs(*paths.values(), reading=Reading(header=False))


def test_ids_are_equal_that_are_written_alike(tmp_path):
    text = "node,cat,dog\n1,0.5,0.5\n2,0.2,0.8\n"
    paths = write(tmp_path, {"probabilities": text, "edges": "source,target\n1,2\n"}.items())
    paths["labels"] = tmp_path / "y.parquet"
    pq.write_table(pa.table({"node": ["1", "2"], "label": ["cat", None]}), paths["labels"])
    assert read_inputs(*paths.values()).truth.tolist() == [0, -1]
    pq.write_table(pa.table({"node": ["1", "02"], "label": ["cat", "dog"]}), paths["labels"])
    with pytest.raises(FileFormatError, match=r"ids that `probabilities` lacks: '02'; the first is in row 1"):
        read_inputs(*paths.values())
