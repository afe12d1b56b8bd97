"""All processes of an install as children of one: `manage.py up`. No Django in here but the settings' values."""
