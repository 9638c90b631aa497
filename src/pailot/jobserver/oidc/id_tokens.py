"""What an ID token says, if the provider signed it for this server and this sign-in. Pure; PyJWT does the cryptography."""

from __future__ import annotations

import hmac

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from .errors import SignInRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By the kind of key. None of them is symmetric: a public key can never be taken for a shared secret."""
LEEWAY_SECONDS = 30.0
MAX_TOKEN_CHARACTERS = 65_536
MIN_RSA_BITS = 2048
_REQUIRED = ["iss", "sub", "aud", "exp", "iat", "nonce"]


def check_id_token(token: str, keys: Mapping[str, Any], *, issuer: str, client_id: str, nonce: str) -> dict[str, Any]:
    """Return the claims of a token. `keys` is the provider's JSON Web Key Set. Raises SignInRefused."""
    if len(token) > MAX_TOKEN_CHARACTERS:
        raise SignInRefused("the ID token is too long")
    try:
        header = jwt.get_unverified_header(token)
        key = _key_of(header.get("kid"), keys)
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=list(ALGORITHMS[str(key.key_type)]),
            audience=client_id,
            issuer=issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": _REQUIRED},
        )
    except jwt.PyJWTError as error:
        raise SignInRefused(f"the ID token is not good: {error}") from None
    except (ValueError, TypeError, OverflowError):
        raise SignInRefused("the ID token cannot be read") from None
    if not isinstance(claims["nonce"], str) or not hmac.compare_digest(claims["nonce"].encode(), nonce.encode()):
        raise SignInRefused("the ID token belongs to another sign-in (nonce)")
    audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if claims.get("azp", client_id) != client_id or (len(audiences) > 1 and "azp" not in claims):
        raise SignInRefused("the ID token was made for another program (azp)")
    if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
        raise SignInRefused("the ID token does not say who the user is (sub)")
    return claims


def _key_of(kid: Any, keys: Mapping[str, Any]) -> jwt.PyJWK:
    """The key that a token names; the only one, where it names none."""
    listed = keys.get("keys")
    usable = [
        each
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and each.get("kty") in ALGORITHMS and each.get("use", "sig") == "sig"
    ]
    fitting = [each for each in usable if each.get("kid") == kid] if kid is not None else usable
    if len(fitting) != 1:
        raise SignInRefused("the ID token is signed with a key that the provider does not have (any more)")
    key = jwt.PyJWK(fitting[0])
    if isinstance(key.key, RSAPublicKey) and key.key.key_size < MIN_RSA_BITS:
        raise SignInRefused(f"the provider's key has less than {MIN_RSA_BITS} bits")
    return key
