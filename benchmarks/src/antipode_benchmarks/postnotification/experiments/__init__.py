"""The paper's experiments on post-notification, each one command of `python -m` with this package's name.

`matrix` is its table 1, `delay` figure 6, `window` figure 7, `size` table 3.
"""
