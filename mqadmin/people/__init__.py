"""People: roles for all clusters or some, log-ins, single sign-on.

Owns the roles and what each may (`roles.py`, pure), who has which role where (`models.py`, `access.py`), the log-ins
(`log_ins.py`), single sign-on (`single_sign_on.py`), and whose eyes see message bodies (`masking.py`, pure).

Invariants: what no role grants, nobody has but a superuser. A role for some clusters never reaches beyond them, nor to
this installation itself. There is always an active administrator.
"""
