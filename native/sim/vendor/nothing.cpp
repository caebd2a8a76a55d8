// An empty library: only its existence is required.
