"""Single sign-on: users log in at an identity provider that speaks OpenID Connect."""
