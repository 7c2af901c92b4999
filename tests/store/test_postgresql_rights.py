"""Who may do what: roles with few rights, and a server that proves who it is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, sql

from levada.core.errors import LevadaError, StoreError
from levada.store.postgresql import PostgresqlStore
from levada.testing.store.visits import first, links
from tests.invariants import check_invariants
from tests.needs import program
from tests.servers.postgresql import new_cluster, own_folder

pytest_plugins = ["tests.servers.fixtures"]

ROOT = Path(__file__).parents[2]
SCHEMA = "levada_1f2e3d4c_0"


@pytest.fixture
def roles(postgresql: str) -> Iterator[dict[str, str]]:
    """The addresses of the roles of docs/postgresql.md, in a database of their own."""
    text = (ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8")
    block = text.partition("```sql\n")[2].partition("```")[0]
    making, _, granting = block.partition("-- after 'levada shard apply' or the first crawl as levada_owner\n")
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE DATABASE rights")
    database = conninfo.make_conninfo(postgresql, dbname="rights")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(making.replace("DATABASE levada", "DATABASE rights").encode())
        users = ("levada_owner", "levada_crawl", "levada_serve", "levada_nobody")
        connection.execute("CREATE ROLE levada_nobody LOGIN")
        addresses = {user: conninfo.make_conninfo(database, user=user) for user in users}
        PostgresqlStore(addresses["levada_owner"], schema=SCHEMA).close()
        with psycopg.connect(addresses["levada_owner"], autocommit=True) as owner:
            owner.execute(granting.encode())
        yield addresses
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("DROP DATABASE rights WITH (FORCE)")
        for user in users:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(user)))


def test_each_role_may_do_its_work_and_no_more(roles: dict[str, str]) -> None:
    with closing(PostgresqlStore(roles["levada_crawl"], schema=SCHEMA)) as crawling:
        crawling.add(links("a", 2), [], 0.0)
        leases = crawling.lease(0.0, 2, 60.0)
        assert crawling.commit([first(lease, 1.0, "text") for lease in leases]) == [True, True]
        crawling._database._connection.execute("UPDATE epochs SET server = 'another'")
        crawling._database._reconnect()
        assert len(crawling.epochs()) == 2, "it may begin an epoch"
        with pytest.raises(StoreError, match="must be owner") as said:
            crawling._database.rows("ALTER TABLE pages ADD COLUMN more bigint")
        assert len(str(said.value).splitlines()) == 1
    with closing(PostgresqlStore(roles["levada_owner"], schema=SCHEMA)) as owning:
        check_invariants(owning)
    with closing(PostgresqlStore.open_reader(roles["levada_serve"], schema=SCHEMA)) as serving:
        assert len(serving.changes(0, 9)) == 2
        assert serving.stats(1.0).stored == 2
    with (
        closing(PostgresqlStore(roles["levada_serve"], schema=SCHEMA)) as writing,
        pytest.raises(StoreError, match=r"does not allow this .permission denied .* as a user who may"),
    ):
        writing.add(links("b", 1), [], 0.0)
    with pytest.raises(StoreError, match=r"does not let the user levada_nobody in: .*GRANT USAGE"):
        PostgresqlStore.open_reader(roles["levada_nobody"], schema=SCHEMA)
    with pytest.raises(StoreError, match=r"does not allow this .permission denied for database"):
        PostgresqlStore(roles["levada_crawl"], schema="levada_other_0")


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run([program("openssl"), *arguments], cwd=folder, check=True, capture_output=True, timeout=60.0)


def test_a_server_is_checked_by_its_certificate(postgresql: str, tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        subject = ("-subj", f"/CN=authority of {name}", "-days", "2")
        openssl(
            tmp_path,
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            *subject,
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.pem",
        )
    folder = own_folder(tmp_path)
    cluster = new_cluster(folder / "data")
    openssl(tmp_path, "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=db", "-keyout", "db.key", "-out", "db.csr")
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1")
    signing = ("-CA", "ours.pem", "-CAkey", "ours.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    openssl(tmp_path, "x509", "-req", "-in", "db.csr", *signing, "-out", "db.pem")
    for name in ("db.key", "db.pem"):
        target = folder / "data" / name
        shutil.copy(tmp_path / name, target)
        target.chmod(0o600)
        shutil.chown(target, (folder / "data").owner(), (folder / "data").group())
    cluster.settings |= {"ssl": "on", "ssl_cert_file": "db.pem", "ssl_key_file": "db.key"}
    cluster.start()
    try:
        checked = f"{cluster.address}?sslmode=verify-full&sslrootcert={tmp_path}"
        with closing(PostgresqlStore(f"{checked}/ours.pem", schema="tls")) as store:
            assert store.add(links("a", 1), [], 0.0) == 1
            assert store._database._connection.pgconn.ssl_in_use
        with pytest.raises(LevadaError, match="certificate verify failed") as said:
            PostgresqlStore(f"{checked}/theirs.pem", schema="tls")
        assert len(str(said.value).splitlines()) == 1
        elsewhere = checked.replace("127.0.0.1", "localhost")
        with pytest.raises(LevadaError, match='does not match host name "localhost"'):
            PostgresqlStore(f"{elsewhere}/ours.pem", schema="tls")
    finally:
        cluster.kill()
        shutil.rmtree(folder, ignore_errors=True)
