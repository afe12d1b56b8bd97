"""Typed bodies: the JSON documents that commands carry. One file per subject, both directions in it.

All are read with fastjson's extensions (`lenient_json`) and written compact, with Java's key names.
"""
