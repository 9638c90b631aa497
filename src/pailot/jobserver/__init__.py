"""The jobs of a team: submit, queue, observe, stop, recover; the only writer of their state.

`Team` is the facade, `running_team` starts it, `errors` says what it refuses, `values` what goes in and out.
"""
