"""Pages for readers without kngjax: a report of releases, a plan before them, and the check of a report.

    releases.json -> document (releases, and what a ledger says) -> page, which holds the document as JSON

`markup` escapes whatever is shown, `drawings` draws it, and `layout` has the style of every page.
"""
