"""Operations on a box: declared state in, differences out, changes last.

Each one gathers all its facts, computes all differences, prints them, and only then yields the calls that
change (pyinfra runs a generator up to its first yield when it plans: research pyinfra.md section 3). Each
takes lists: looped operations lose their names in pyinfra's plan.
"""
