"""Every compiled function, on plain arrays.

The kernels know arrays and nothing of people: arguments are checked before they come here. They are compiled
by Numba at the first call, release the interpreter lock, and are cached on disk for later processes. No kernel
starts threads of its own; `napsets.kernels.threads` runs them on ordinary Python threads, which keeps Ctrl-C,
progress and forked children working.
"""
