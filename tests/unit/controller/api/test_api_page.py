"""The dashboard's files, served beside the API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from controller.api.server import ApiSettings, make_app
from tests.unit.api_world import World, api_world

TOKEN = "a-token-for-operators"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with api_world(tmp_path_factory.mktemp("page")) as world:
        yield world


def a_page(world: World, folder: Path, token: str | None = None) -> FlaskClient:
    app = make_app(world.running, world.store, ApiSettings(token, page=folder), "0.1.0")
    return app.test_client()


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "webui" / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<title>the page</title>")
    (folder / "assets" / "index-0123.js").write_text("1")
    (folder / "icon.svg").write_text("<svg/>")
    (tmp_path / "secret.txt").write_text("not for anybody")
    return folder


@pytest.mark.parametrize("address", ["/", "/fabric", "/flows/17", "/experiments/3/results", "/apiary"])
def test_every_view_is_the_same_page_and_never_kept(world: World, built: Path, address: str) -> None:
    answer = a_page(world, built).get(address)
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    assert "the page" in answer.get_data(as_text=True)
    assert "no-cache" in answer.headers["Cache-Control"]
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "up",
    [
        "..%2f..%2f",
        "%2e%2e/%2e%2e/",
        "assets%2f..%2f..%2f..%2f",
        "..%2f..%2f..%2f..%2f..%2fetc%2f",
        "%2fetc%2f",
    ],
)
def test_what_exists_outside_of_the_page_looks_like_what_does_not(world: World, built: Path, up: str) -> None:
    (built.parents[1] / "secret").write_text("not for anybody")
    client = a_page(world, built)
    answers = [client.get(f"/{up}{name}") for name in ("secret", "nosuch", "passwd", "webui")]
    shown = {
        (answer.status_code, answer.get_data(), *(pair for pair in answer.headers if pair[0] != "Date"))
        for answer in answers
    }
    assert len(shown) == 1


def test_files_named_by_their_content_are_kept_for_ever_others_asked_for_again(
    world: World, built: Path
) -> None:
    client = a_page(world, built)
    script, icon = client.get("/assets/index-0123.js"), client.get("/icon.svg")
    assert (script.status_code, script.mimetype) == (200, "text/javascript")
    assert "immutable" in script.headers["Cache-Control"]
    assert "no-cache" in icon.headers["Cache-Control"]
    assert client.get("/icon.svg", headers={"If-None-Match": icon.headers["ETag"]}).status_code == 304


@pytest.mark.parametrize(
    "address", ["/assets/none.js", "/../../secret.txt", "/%2e%2e/%2e%2e/secret.txt", "/favicon.ico"]
)
def test_what_is_no_file_of_the_page_is_not_found(world: World, built: Path, address: str) -> None:
    answer = a_page(world, built).get(address)
    assert answer.status_code == 404
    assert "not for anybody" not in answer.get_data(as_text=True)


@pytest.mark.parametrize("address", ["/api", "/api/", "/api/v1/nothing"])
def test_the_api_keeps_its_own_addresses(world: World, built: Path, address: str) -> None:
    client = a_page(world, built)
    for answer in (client.get(address), client.post(address)):
        assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")


def test_the_page_needs_no_token_but_what_it_shows_does(world: World, built: Path) -> None:
    client = a_page(world, built, TOKEN)
    assert client.get("/fabric").status_code == 200
    assert client.get("/api/v1/fabric").status_code == 401


def test_a_page_that_was_not_built_says_why_and_is_there_once_it_is(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "webui" / "dist"
    client = a_page(world, folder)
    answer = client.get("/fabric")
    assert (answer.status_code, answer.mimetype) == (503, "text/html")
    assert "npm run build" in answer.get_data(as_text=True)
    (tmp_path / ".setup").mkdir()
    (tmp_path / ".setup" / "webui.problem").write_text("no <network>")
    assert "no &lt;network&gt;" in client.get("/").get_data(as_text=True)
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("<title>the page</title>")
    assert client.get("/").status_code == 200


def test_where_it_is_to_open_on_the_tour_only_the_bare_address_leads_there(world: World, built: Path) -> None:
    settings = ApiSettings(None, page=built, opens_on_tour=True)
    client = make_app(world.running, world.store, settings, "0.1.0").test_client()
    answer = client.get("/")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/tour")
    for address in ("/tour", "/watch"):
        assert client.get(address).status_code == 200
