"""Random draws as hashes of counters, the same on any thread: edges of a random graph, and neighbourhoods.

The neighbourhoods are those that a graph network is trained on. A sample is one CSR over local ids, ordered by the
layer at which a node is needed: `sizes[h]` nodes lie within h steps of the seeds, seeds first. So the layer that
computes the first `sizes[h]` nodes reads the first `sizes[h]` rows, and nothing is stored twice. What a node draws is a
hash of (key, node): no thread, batch or order of visiting can change it.
"""

from __future__ import annotations

import numpy as np

from napsets.kernels._jit import jit, part, sort_in_place


@jit
def hash64(word):
    """Return SplitMix64's output for a state: a bijection that scatters neighbouring words."""
    word = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@jit
def to_unit(word):
    """Turn a word into a number in [0, 1) by its upper 53 bits."""
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@jit
def below(word, bound):
    """Turn a word into an integer in 0..bound−1, for bounds under 2³²; biased by less than bound / 2³²."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@part
def _first_above(running, guide, share, value):
    """Return the first position whose running sum exceeds `value`, starting where the guide table points."""
    last = running.shape[0] - 1
    position = np.int64(guide[min(np.int64(value * share), guide.shape[0] - 1)])
    while position > 0 and running[position - 1] > value:
        position -= 1
    while position < last and running[position] <= value:
        position += 1
    return position


@jit
def draw_edges(running, order, block_ends, same, seed, source, target):
    """Fill `source` and `target`, each edge from the hash of its number.

    Nodes stand block by block in `order`; `running` holds the running sum of their weights, `block_ends` that sum
    at the end of each block. Sources are stratified, so each node starts its expected number of edges up to one;
    the target lies in the source's block with probability `same`, and is drawn by weight there or outside.
    """
    nodes, edges = running.shape[0], source.shape[0]
    total = running[nodes - 1]
    guide = np.zeros(nodes, np.int64)
    share = nodes / total
    position = 0
    for cell in range(nodes):
        while position < nodes - 1 and running[position] <= cell / share:
            position += 1
        guide[cell] = position
    block = 0
    for e in range(edges):
        word = hash64(np.uint64(seed) ^ hash64(np.uint64(e)))
        at = min((e + to_unit(word)) * (total / edges), total * (1.0 - 1e-16))
        while block < block_ends.shape[0] - 1 and block_ends[block] <= at:
            block += 1
        low = 0.0 if block == 0 else block_ends[block - 1]
        width = block_ends[block] - low
        word = hash64(word)
        inside = to_unit(word) < same or width >= total
        draw = to_unit(hash64(word))
        if inside:
            goal = low + draw * width
        else:
            goal = draw * (total - width)
            if goal >= low:
                goal += width
        source[e] = order[_first_above(running, guide, share, at)]
        target[e] = order[_first_above(running, guide, share, goal)]


@part
def _grown(array, needed):
    """Return the array, or a copy of twice the room if `needed` entries do not fit."""
    if needed <= array.shape[0]:
        return array
    larger = np.empty(max(needed, 2 * array.shape[0]), array.dtype)
    for i in range(array.shape[0]):
        larger[i] = array[i]
    return larger


@part
def _choose(indices, start, degree, count, word, out, at):
    """Write `count` of a node's neighbours to ``out[at:]``, each set of that size equally likely (Floyd's method)."""
    if count == degree:
        for j in range(count):
            out[at + j] = indices[start + j]
        return
    for j in range(count):
        last = degree - count + j
        drawn = below(hash64(word + np.uint64(j)), last + 1)
        for i in range(j):
            if out[at + i] == drawn:
                drawn = last
                break
        out[at + j] = drawn
    for j in range(count):
        out[at + j] = indices[start + out[at + j]]


@jit
def neighbours(indptr, indices, seeds, fanouts, key, position):
    """Sample up to ``fanouts[h]`` neighbours (all, if negative) of every node first met h steps from the seeds.

    `position` holds −1 for every node of the graph, and does so again afterwards. Returns the nodes' ids, the rows'
    offsets, the columns as local ids, and `sizes`.
    """
    count = seeds.shape[0]
    nodes = np.empty(4 * count + 64, np.int64)
    offsets = np.zeros(4 * count + 64, np.int64)
    edges = np.empty(16 * count + 64, np.int64)
    sizes = np.empty(fanouts.shape[0] + 1, np.int64)
    for i in range(count):
        nodes[i] = seeds[i]
        position[seeds[i]] = i
    sizes[0] = count
    filled = 0
    begin = 0
    for hop in range(fanouts.shape[0]):
        end = count
        for i in range(begin, end):
            node = nodes[i]
            start, degree = indptr[node], indptr[node + 1] - indptr[node]
            taken = degree if fanouts[hop] < 0 else min(degree, fanouts[hop])
            edges = _grown(edges, filled + taken)
            nodes = _grown(nodes, count + taken)
            offsets = _grown(offsets, count + taken + 2)
            _choose(indices, start, degree, taken, hash64(np.uint64(key) ^ hash64(node)), edges, filled)
            for e in range(filled, filled + taken):
                other = edges[e]
                if position[other] < 0:
                    position[other] = count
                    nodes[count] = other
                    count += 1
                edges[e] = position[other]
            sort_in_place(edges[filled : filled + taken])
            filled += taken
            offsets[i + 1] = filled
        begin = end
        sizes[hop + 1] = count
    for i in range(count):
        position[nodes[i]] = -1
    return nodes[:count].copy(), offsets[: begin + 1].copy(), edges[:filled].copy(), sizes


@part
def _ego(indptr, indices, root, depth, fanout, key, slot, members, drawn):
    """Sample the ego-net of a root: `slot` of each member becomes its place in `members`; returns those arrays."""
    members[0] = root
    slot[root] = 0
    count, begin = 1, 0
    for _ in range(depth):
        end = count
        for i in range(begin, end):
            node = members[i]
            start, degree = indptr[node], indptr[node + 1] - indptr[node]
            taken = degree if fanout < 0 else min(degree, fanout)
            drawn = _grown(drawn, taken)
            members = _grown(members, count + taken)
            word = hash64(hash64(np.uint64(key) ^ hash64(root)) ^ np.uint64(node))
            _choose(indices, start, degree, taken, word, drawn, 0)
            for j in range(taken):
                if slot[drawn[j]] < 0:
                    slot[drawn[j]] = count
                    members[count] = drawn[j]
                    count += 1
        begin = end
    return count, members, drawn


@jit
def shadow(indptr, indices, roots, depth, fanout, key, layers, slot):
    """Sample one ego-net per root and join the subgraphs induced on them, as far as `layers` layers can see.

    Each ego-net holds up to `fanout` sampled neighbours (all, if negative) of every node, `depth` steps deep. Its
    nodes are ordered by their distance from the root in the induced subgraph; rows are written for distances below
    `layers`, so ``layers = depth + 1`` gives the whole of every ego-net. `slot` is −1 everywhere, before and after.
    Returns ids, offsets, columns, `sizes`, and each node's degree in its ego-net.
    """
    batch = roots.shape[0]
    flat = np.empty(64 * batch, np.int64)  # members that some layer needs, root by root, nearest first
    degrees = np.empty(64 * batch, np.int64)
    row_start = np.empty(64 * batch, np.int64)
    edges = np.empty(256 * batch, np.int64)  # columns, as places in `flat`
    members, drawn = np.empty(512, np.int64), np.empty(64, np.int64)
    levels = np.empty(64 * batch, np.int64)  # the distance of each from its root
    total = filled = 0
    for b in range(batch):
        size, members, drawn = _ego(indptr, indices, roots[b], depth, fanout, key, slot, members, drawn)
        place = np.full(size, -1, np.int64)
        flat, degrees = _grown(flat, total + size), _grown(degrees, total + size)
        row_start, levels = _grown(row_start, total + size), _grown(levels, total + size)
        place[0] = total
        flat[total] = roots[b]
        begin, end, total = total, total + 1, total + 1
        for level in range(layers + 1):
            for i in range(begin, end):
                node = flat[i]
                levels[i], row_start[i] = level, filled
                degree = 0
                edges = _grown(edges, filled + size)
                for e in range(indptr[node], indptr[node + 1]):
                    s = slot[indices[e]]
                    if s >= 0:
                        if level < layers:
                            if place[s] < 0:
                                place[s] = total
                                flat[total] = members[s]
                                total += 1
                            edges[filled + degree] = place[s]
                        degree += 1
                degrees[i] = degree
                if level < layers:
                    filled += degree
            begin, end = end, total
        for i in range(size):
            slot[members[i]] = -1
    return _by_level(flat[:total], levels, degrees, row_start, edges, layers)


@part
def _by_level(flat, levels, degrees, row_start, edges, layers):
    """Reorder ego-nets that stand one after another so that all roots come first, then all their neighbours, …."""
    sizes = np.zeros(layers + 1, np.int64)
    final, source = np.empty(flat.shape[0], np.int64), np.empty(flat.shape[0], np.int64)
    placed = 0
    for level in range(layers + 1):
        for i in range(flat.shape[0]):
            if levels[i] == level:
                final[i], source[placed] = placed, i
                placed += 1
        sizes[level] = placed
    rows = sizes[layers - 1]
    offsets = np.zeros(rows + 1, np.int64)
    for i in range(rows):
        offsets[i + 1] = offsets[i] + degrees[source[i]]
    columns = np.empty(offsets[rows], np.int64)
    for i in range(rows):
        start = row_start[source[i]]
        for j in range(offsets[i + 1] - offsets[i]):
            columns[offsets[i] + j] = final[edges[start + j]]
        sort_in_place(columns[offsets[i] : offsets[i + 1]])
    return flat[source], offsets, columns, sizes, degrees[source]


@jit
def with_self_loops(offsets, columns, degrees):
    """Add each row's own node and weigh as a graph convolution does: 1 / √((dᵢ+1)(dⱼ+1)).

    `degrees` may exceed the entries of a row, which is then a sample: its weights are scaled up so that their
    expectation is that of the whole row.
    """
    rows = offsets.shape[0] - 1
    looped = np.empty(rows + 1, np.int64)
    out = np.empty(columns.shape[0] + rows, np.int64)
    weights = np.empty(columns.shape[0] + rows, np.float32)
    looped[0] = at = 0
    for i in range(rows):
        taken = offsets[i + 1] - offsets[i]
        scale = degrees[i] / taken if taken else 0.0
        placed = False
        for e in range(offsets[i], offsets[i + 1]):
            j = columns[e]
            if not placed and j > i:
                out[at], weights[at] = i, 1.0 / (degrees[i] + 1.0)
                at += 1
                placed = True
            out[at], weights[at] = j, scale / np.sqrt((degrees[i] + 1.0) * (degrees[j] + 1.0))
            at += 1
        if not placed:
            out[at], weights[at] = i, 1.0 / (degrees[i] + 1.0)
            at += 1
        looped[i + 1] = at
    return looped, out, weights


@jit
def dense_rows(indptr, indices, values, nodes, out):
    """Write rows of a sparse matrix into the zeros of `out`."""
    for i in range(nodes.shape[0]):
        for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            out[i, indices[e]] += values[e]
