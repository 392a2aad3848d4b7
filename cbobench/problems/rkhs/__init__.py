"""Problems of the papers: random functions of a kernel space, pockets, queues and guidance."""
