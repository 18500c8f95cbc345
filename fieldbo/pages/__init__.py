"""Web pages of a run: self-contained files that open in a browser, offline.

``templates`` and ``static`` hold what a page is made of, ``vendor`` the libraries of others that are built
into it, with their licences.
"""
