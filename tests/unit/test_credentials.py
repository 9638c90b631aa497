"""What looks like a credential and what does not: names, values, places in a text."""

from __future__ import annotations

import doctest
import time

import pytest

from pailot import credentials


def test_the_examples_in_the_module_hold() -> None:
    done = doctest.testmod(credentials)
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_PAT", "ghx-12ab34cd56"),
        ("MYSQL_PWD", "sword-fish"),
        ("SSH_PASSPHRASE", "two words"),
        ("HF_CREDENTIALS", "hfcred1234"),
        ("GH_AUTH", "dXNlcjpwYXNz"),
        ("db_password", "swordfish"),
        ("dbPassword", "swordfish"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("WANDB_API_KEY", "0123456789abcdef0123456789abcdef"),
        ("SSHPASS", "a1b2c3d4e5"),
        ("AZURE_CONNECTION_STRING", "AccountName=a;AccountKey=abcd1234=="),
        ("password", "12345678"),
    ],
)
def test_a_value_with_the_name_of_a_credential_is_one(name: str, value: str) -> None:
    assert value in credentials.of_value(name, value)
    assert value in credentials.of_environment({name: value})
    assert not credentials.is_harmless(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("USE_TOKEN", "true"),
        ("PASSWORD", "1"),
        ("DB_PASSWORD", "no"),
        ("SSH_AUTH_SOCK", "/run/user/1000/agent.1"),
        ("TOKEN", "~/.config/token1"),
        ("XAUTH", "host1.example.com"),
        ("DB_PASSWORD", "db1.example.com:5432"),
        ("DB_PASSWORD", "10.0.0.12"),
        ("password", "<% $secrets.password %>"),
        ("password", "$DB_PASSWORD"),
        ("password", "******"),
        ("max_tokens", "4096"),
        ("eos_token", "<|endoftext1|>"),
        ("sort_key", "timestamp"),
        ("auth", "basic"),
        ("PWD", "/work"),
        ("PATH", "/usr/bin:/bin"),
        ("data_path", "s3://bucket/key1"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("url", "https://example.com/a?page=12&size=100000"),
    ],
)
def test_ordinary_values_are_left_alone(name: str, value: str) -> None:
    assert list(credentials.of_value(name, value)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("git clone https://ann:hunter22@example.com/a.git", ["hunter22"]),
        ("wget https://ann:p%40ss%2Fword@example.com", ["p%40ss%2Fword", "p@ss/word"]),
        ("pip install git+https://4f5a6b7c8d9e0f1a2b3c@example.com/x", ["4f5a6b7c8d9e0f1a2b3c"]),
        ("curl 'https://b.example/x?X-Amz-Date=20260101&X-Amz-Signature=0a1b2c3d4e5f&a=1'", ["0a1b2c3d4e5f"]),
        ("azcopy https://a.example/c?sv=2020&sig=abCD12%2Bef", ["abCD12%2Bef", "abCD12+ef"]),
        ("curl 'https://x.example/?access_token=AbCd1234'", ["AbCd1234"]),
        ("export DB_PASSWORD='correct horse'; run", ["correct horse"]),
        ("MYSQL_PWD=hunter22 mysql", ["hunter22"]),
        ("train --api-key 1a2b3c4d5e --password=hunter22", ["1a2b3c4d5e", "hunter22"]),
        ("curl -H 'Authorization: Bearer abc123def456'", ["abc123def456"]),
        ("""echo '{"password": "hunter22"}'""", ["hunter22"]),
        ("echo ghp_0123456789012345678901234567890123456789", ["ghp_0123456789012345678901234567890123456789"]),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nxyz=\n-----END RSA PRIVATE KEY-----\n", ["MIIabc\nxyz=\n"]),
        ("python train.py --token-limit 100000 --key-file /etc/key --data s3://u@host/x password is required", []),
        ("hdfs://10.151.40.179:9000/data and user@host:22", []),
        ("export TOKEN=$OTHER PASSWORD=${X} KEY=$(cat key)", []),
    ],
)
def test_credentials_in_a_command_are_found(text: str, found: list[str]) -> None:
    assert list(credentials.in_text(text)) == found
    assert not found or credentials.may_hold(text)


def test_only_known_names_are_harmless() -> None:
    for name in ("PATH", "HOME", "LC_ALL", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "PAI_WORK_DIR", "TERM"):
        assert credentials.is_harmless(name)
    for name in ("DATABASE_URL", "HTTPS_PROXY", "PIP_INDEX_URL", "ANY_NAME", "PAI_TOKEN", "SLURM_JWT_TOKEN", "TF_TOKEN_host"):
        assert not credentials.is_harmless(name)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "--a",
        "://",
        "://a:",
        "eyJ",
        "-----BEGIN PRIVATE KEY-----\n",
        "a=",
        "'a':",
        "1-",
        "bearer ",
        "?a=b&",
        "ghp_",
        "a.b-",
        "% ",
    ],
)
def test_hostile_texts_cost_no_more_than_their_size(piece: str) -> None:
    """Eight times the size may cost twenty times the CPU, not sixty-four times."""

    def cost(size: int) -> float:
        text = "password token=" + piece * (size // len(piece))
        best = 1e9
        for _ in range(3):
            before = time.process_time()
            list(credentials.of_value("password", text))
            best = min(best, time.process_time() - before)
        return best

    assert cost(160_000) < 20 * cost(20_000) + 0.02
