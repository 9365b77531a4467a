"""Every compiled function, on plain arrays.

The kernels take plain arrays and check nothing: callers check the arguments. They are compiled
by Numba at the first call, release the interpreter lock, and are cached on disk for later processes. No kernel
starts threads of its own; `napsets.kernels.threads` runs them on ordinary Python threads, which keeps Ctrl-C,
progress and forked children working.
"""
