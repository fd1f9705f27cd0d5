"""A random workload over workers in Python, Java and C++ on real stores, recorded, and judged: see workload.md."""
