"""Arguments, looked at before anything is computed: what is wrong is said by name."""
