"""A Django app that lets a broker of ours handle requests however late they come; for MQADMIN_APPS of its process."""
