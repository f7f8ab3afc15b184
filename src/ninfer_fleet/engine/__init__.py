"""NInfer's program: its releases, and how one is built."""
