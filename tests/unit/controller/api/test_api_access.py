"""Who may ask what: roles of tokens, cookies for browsers, other origins, foreign names, and too many experiments."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from controller.api.access import SESSION_S, Access, Rate
from controller.api.problems import ProblemError
from controller.api.server import ApiSettings, make_app
from tests.unit.api_world import BASE, World

OPERATE, READ = "a token that may do all", "a token that may only read"
EXPERIMENT = {"name": "demo", "seed": 1, "spec": {}}


@pytest.fixture
def guarded(world: World) -> World:
    """Return the same controller as on an address that others reach."""
    app = make_app(world.running, world.store, ApiSettings(OPERATE, True, READ, 1000), "0.1.0")
    return World(
        world.running, world.engine, world.store, app, app.test_client(), world.directory, world.document
    )


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_for_reading_changes_nothing(guarded: World) -> None:
    client = guarded.client
    assert client.get(f"{BASE}/fabric", headers=bearer(READ)).status_code == 200
    refused = client.post(f"{BASE}/experiments/recorded", json=EXPERIMENT, headers=bearer(READ))
    assert refused.status_code == 403
    assert "reading only" in refused.get_json()["detail"]
    for method, path in (
        ("PUT", "/scheme"),
        ("POST", "/faults"),
        ("DELETE", "/faults/1"),
        ("PATCH", "/experiments/1"),
    ):
        assert client.open(BASE + path, method=method, json={}, headers=bearer(READ)).status_code == 403
    assert (
        client.post(f"{BASE}/experiments/recorded", json=EXPERIMENT, headers=bearer(OPERATE)).status_code
        == 201
    )


@pytest.mark.parametrize(("token", "role", "may"), [(OPERATE, "operate", 201), (READ, "read", 403)])
def test_a_cookie_stands_for_its_token_and_does_not_show_it(
    guarded: World, token: str, role: str, may: int
) -> None:
    client = guarded.app.test_client()
    answer = client.post(f"{BASE}/session", headers=bearer(token))
    assert answer.get_json()["role"] == role
    assert abs(answer.get_json()["until"] - time.time() - SESSION_S) < 60
    said = answer.headers["Set-Cookie"]
    name = Access(OPERATE, READ).cookie_name
    assert said.startswith(f"{name}=")
    assert "HttpOnly" in said
    assert "SameSite=Strict" in said
    assert token not in said
    assert client.get(f"{BASE}/fabric").status_code == 200
    assert client.post(f"{BASE}/experiments/recorded", json=EXPERIMENT).status_code == may
    unknown = guarded.app.test_client()
    unknown.set_cookie(name, token)
    assert unknown.get(f"{BASE}/fabric").status_code == 401
    assert unknown.post(f"{BASE}/session").status_code == 401
    assert client.delete(f"{BASE}/session").get_json() == {"ended": True}
    assert client.get(f"{BASE}/fabric").status_code == 401
    assert client.get(f"{BASE}/fabric", headers=bearer(token)).status_code == 200


def test_a_session_ends_at_its_time_and_cannot_be_made_longer_by_its_reader() -> None:
    now = [1000.0]
    access = Access(OPERATE, READ, now=lambda: now[0])
    head = {"REQUEST_METHOD": "GET", "PATH_INFO": f"{BASE}/fabric", "HTTP_HOST": "localhost"}
    session = access.session_of(head | {"HTTP_AUTHORIZATION": f"Bearer {READ}"})
    assert session is not None
    kept = head | {"HTTP_COOKIE": f"{access.cookie_name}={session.cookie}"}
    now[0] += SESSION_S - 1
    access.check(kept)
    longer = access.session_of(kept)
    assert longer is not None
    now[0] += 1
    signature = session.cookie.partition(".")[2]
    for cookie in (
        session.cookie,
        f"{session.until + 99}.{signature}",
        f"9{session.cookie}",
        f".{signature}",
        "9" * 5000,
    ):
        with pytest.raises(ProblemError):
            access.check(head | {"HTTP_COOKIE": f"{access.cookie_name}={cookie}"})
    access.check(head | {"HTTP_COOKIE": f"{access.cookie_name}={longer.cookie}"})


def test_controllers_on_one_machine_do_not_end_sessions_of_each_other() -> None:
    """A browser keeps cookies by name, not by port: it sends each controller those of all."""
    first, second = Access(OPERATE, READ), Access("another token", "another one for reading")
    kept: dict[str, str] = {}
    for access, token in ((first, OPERATE), (second, "another token")):
        session = access.session_of({"HTTP_AUTHORIZATION": f"Bearer {token}"})
        assert session is not None
        kept[access.cookie_name] = session.cookie
    cookies = "; ".join(f"{name}={value}" for name, value in kept.items())
    head = {"REQUEST_METHOD": "GET", "PATH_INFO": f"{BASE}/fabric", "HTTP_HOST": "localhost"}
    for access in (first, second):
        access.check(head | {"HTTP_COOKIE": cookies})


def test_pages_of_others_change_nothing(world: World, guarded: World) -> None:
    for client, headers in ((world.client, {}), (guarded.client, bearer(OPERATE))):
        for origin in ("http://evil.example", "null", "http://localhost:1"):
            answer = client.post(
                f"{BASE}/experiments/recorded", json=EXPERIMENT, headers={**headers, "Origin": origin}
            )
            assert answer.status_code == 403
            assert "same origin only" in answer.get_json()["detail"]
        own = client.post(
            f"{BASE}/experiments/recorded", json=EXPERIMENT, headers={**headers, "Origin": "http://localhost"}
        )
        assert own.status_code == 201
        assert not [name for name in dict(own.headers) if name.lower().startswith("access-control")]


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.example", ""])
def test_without_tokens_foreign_names_are_not_ours(world: World, host: str) -> None:
    """A page may have its own name point to 127.0.0.1, and would then be of one origin with us."""
    answer = world.client.get(f"{BASE}/fabric", headers={"Host": host})
    assert answer.status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "[::1]:80", "capstan.localhost:80"])
def test_our_own_names_are(world: World, host: str) -> None:
    assert world.client.get(f"{BASE}/fabric", headers={"Host": host}).status_code == 200


def test_with_tokens_the_name_does_not_matter(guarded: World) -> None:
    answer = guarded.client.get(f"{BASE}/fabric", headers={**bearer(READ), "Host": "fabric.example"})
    assert answer.status_code == 200


def test_who_begins_too_many_experiments_has_to_wait() -> None:
    rate = Rate(per_s=0.5, burst=2, now=10.0)
    rate.take(10.0)
    rate.take(10.0)
    with pytest.raises(ProblemError, match=r"try again in 1\.0 s") as caught:
        rate.take(11.0)
    assert caught.value.status == 429
    rate.take(12.0)
    with pytest.raises(ProblemError):
        rate.take(13.0)
    for _ in range(2):
        rate.take(1000.0)
    with pytest.raises(ProblemError):
        rate.take(1000.0)


def test_who_waits_as_long_as_was_said_is_not_refused_again() -> None:
    rate = Rate(per_s=32, burst=1, now=0.0)
    rate.take(0.0)
    with pytest.raises(ProblemError, match=r"try again in 0\.1 s"):
        rate.take(0.0)
    rate.take(0.1)


def test_the_rate_holds_for_submissions(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.api.server.SUBMIT_BURST", 3)
    app = make_app(world.running, world.store, ApiSettings(submits_per_s=0.001), "0.1.0")
    statuses = [
        app.test_client().post(f"{BASE}/experiments/recorded", json=EXPERIMENT).status_code for _ in range(5)
    ]
    assert statuses == [201, 201, 201, 429, 429]
    assert app.test_client().get(f"{BASE}/experiments").status_code == 200
