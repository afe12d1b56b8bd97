"""Keeps why messages failed in this project's own database, bounded, and without ever holding up consumption."""
