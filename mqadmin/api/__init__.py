"""REST: `/api/v1/`, the tree of the pages for programs. docs/REST.md is its documentation for people.

Reads call the same selectors as the pages, changes the same runner; neither rules nor queries live here. What is here
is HTTP: addresses, shapes of documents, cursors, problems (RFC 9457), limits, exports, and the OpenAPI description.
"""
