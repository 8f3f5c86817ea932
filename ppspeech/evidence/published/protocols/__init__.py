"""The papers' own protocols on real keys, corrected only where they cannot run; not for use: each says what it
leaks.
"""
