"""Trees on disk: one time stamp, nothing but plain files, whatever hostile code left behind."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from rsi.errors import SubmissionError
from rsi.prism.tree import MAX_BYTES, MAX_DEPTH, MAX_FILES, File, Tree
from workers import trees
from workers.trees import (
    changed_files,
    disk_usage,
    read_tree,
    remove_tree,
    reopen,
    write_tree,
)

TREE = Tree.of(
    {"run.sh": "#!/bin/sh\n", "a/b/c.txt": "deep", "a/x.bin": b"\x00\xff", "z.py": ""}, ["run.sh"]
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "tree"
    place.mkdir()
    return place


def test_a_written_tree_reads_back_byte_for_byte(root: Path) -> None:
    write_tree(TREE, root)
    assert read_tree(root, strict=True) == TREE
    assert list(read_tree(root, strict=True).files) == sorted(TREE.files)


def test_every_file_and_folder_has_the_same_time_and_plain_modes(root: Path) -> None:
    write_tree(TREE, root)
    places = [root, *root.rglob("*")]
    assert {place.lstat().st_mtime_ns for place in places} == {trees.MTIME_NS}
    modes = {str(p.relative_to(root)): p.lstat().st_mode & 0o7777 for p in places}
    assert modes["run.sh"] == 0o755
    assert modes["z.py"] == 0o644
    assert modes["."] == modes["a"] == modes["a/b"] == 0o755


def test_a_tree_that_is_not_writable_has_no_write_bits_on_files(root: Path) -> None:
    write_tree(TREE, root, writable=False)
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o555
    assert (root / "a/b/c.txt").stat().st_mode & 0o777 == 0o444


def test_compiled_files_are_neither_written_nor_read_nor_compared(root: Path) -> None:
    tree = Tree.of({"m.py": "1", "m.pyc": "x", "__pycache__/m.cpython-311.pyc": "x", "o.pyo": "x"})
    write_tree(tree, root)
    assert sorted(p.name for p in root.rglob("*")) == ["m.py"]
    assert changed_files(tree, root) == ()
    (root / "__pycache__").mkdir()
    (root / "__pycache__/m.txt").write_text("x")
    (root / "n.pyc").write_text("x")
    assert list(read_tree(root, strict=True).files) == ["m.py"]


@pytest.mark.parametrize(
    "files", [{"a": "1", "a/b": "2"}, {"a/b": "2", "a/b/c": "3"}, {"é" * 200: "name too long"}]
)
def test_a_tree_that_cannot_be_files_is_a_bad_submission(root: Path, files: dict[str, str]) -> None:
    with pytest.raises(SubmissionError):
        write_tree(Tree.of(files), root)


def test_a_path_out_of_the_root_is_never_written(root: Path) -> None:
    with pytest.raises(SubmissionError, match="relative path"):
        write_tree(Tree(files={"../x": File(content=b"")}), root)
    assert not (root.parent / "x").exists()


def _link(root: Path) -> None:
    (root / "bad").symlink_to("/etc/passwd")


def _folder_link(root: Path) -> None:
    (root / "bad").symlink_to("/etc", target_is_directory=True)


def _fifo(root: Path) -> None:
    os.mkfifo(root / "bad")


def _socket(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.getcwd()
        os.chdir(root)  # a socket's path is short
        try:
            sock.bind("bad")
        finally:
            os.chdir(here)


def _hard_link(root: Path) -> None:
    secret = root.parent / "secret"
    secret.write_text("secret")
    os.link(secret, root / "bad")


def _setuid(root: Path) -> None:
    (root / "bad").write_text("x")
    (root / "bad").chmod(0o4755)


def _setgid(root: Path) -> None:
    (root / "bad").write_text("x")
    (root / "bad").chmod(0o2755)


def _unreadable(root: Path) -> None:
    (root / "bad").write_text("x")
    (root / "bad").chmod(0o000)


def _closed_folder(root: Path) -> None:
    (root / "bad").mkdir()
    (root / "bad/inside").write_text("x")
    (root / "bad").chmod(0o600)


def _not_utf8(root: Path) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff")).write_text("x")


def _control_character(root: Path) -> None:
    (root / "bad\n").write_text("x")


def _too_deep(root: Path) -> None:
    place = root / "/".join(["bad"] * MAX_DEPTH)
    place.mkdir(parents=True)
    (place / "f").write_text("x")


@pytest.mark.parametrize(
    "plant",
    [
        _link,
        _folder_link,
        _fifo,
        _socket,
        _hard_link,
        _setuid,
        _setgid,
        _unreadable,
        _closed_folder,
        _not_utf8,
        _control_character,
        _too_deep,
    ],
)
def test_a_submission_with_it_is_refused_and_a_used_tree_leaves_it_out(
    root: Path, plant: Callable[[Path], None]
) -> None:
    write_tree(Tree.of({"good.py": "1"}), root)
    plant(root)
    try:
        with pytest.raises(SubmissionError, match="bad"):
            read_tree(root, strict=True)
        assert read_tree(root, strict=False) == Tree.of({"good.py": "1"})
    finally:
        remove_tree(root)


def test_the_deepest_allowed_path_is_read(root: Path) -> None:
    path = "/".join(["d"] * (MAX_DEPTH - 1)) + "/f"
    write_tree(Tree.of({path: "x"}), root)
    assert list(read_tree(root, strict=True).files) == [path]


@pytest.mark.parametrize("strict", [True, False])
def test_too_many_files_or_bytes_or_entries_are_refused_before_they_are_read(
    root: Path, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(root / "sparse", "wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(SubmissionError, match="bytes"):
        read_tree(root, strict=strict)
    with open(root / "sparse", "wb") as file:
        file.truncate(MAX_BYTES)
    assert len(read_tree(root, strict=strict).files) == 1
    (root / "one-more").write_text("x")
    with pytest.raises(SubmissionError, match="bytes"):
        read_tree(root, strict=strict)
    monkeypatch.setattr(trees, "MAX_ENTRIES", 1)
    with pytest.raises(SubmissionError, match="entries"):
        read_tree(root, strict=strict)


def test_the_cap_on_files_is_exact(root: Path) -> None:
    for number in range(MAX_FILES):
        (root / str(number)).touch()
    assert len(read_tree(root, strict=True).files) == MAX_FILES
    (root / "more").touch()
    with pytest.raises(SubmissionError, match="files"):
        read_tree(root, strict=True)


def test_a_missing_directory_or_a_link_to_one_is_refused(root: Path) -> None:
    with pytest.raises(SubmissionError, match="not a readable directory"):
        read_tree(root / "none", strict=True)
    (root.parent / "link").symlink_to(root)
    with pytest.raises(SubmissionError, match="not a readable directory"):
        read_tree(root.parent / "link", strict=False)


def test_modes_are_reduced_to_one_executable_bit(root: Path) -> None:
    (root / "x").write_text("x")
    (root / "x").chmod(0o777)
    (root / "y").write_text("y")
    (root / "y").chmod(0o655)  # executable for others only
    files = read_tree(root, strict=True).files
    assert (files["x"].executable, files["y"].executable) == (True, False)


def test_new_files_are_no_change_but_altered_missing_and_replaced_ones_are(root: Path) -> None:
    names = ["same.py", "longer.py", "other.py", "gone.py", "link.py", "folder.py", "d/in.py"]
    tree = Tree.of(dict.fromkeys(names, "text"))
    write_tree(tree, root)
    assert changed_files(tree, root) == ()
    (root / "new.py").write_text("x")
    assert changed_files(tree, root) == ()
    (root / "longer.py").write_text("text and more")
    (root / "other.py").write_text("TEXT")
    os.utime(root / "other.py", ns=(trees.MTIME_NS, trees.MTIME_NS))
    (root / "gone.py").unlink()
    (root / "copy").write_text("text")
    (root / "link.py").unlink()
    (root / "link.py").symlink_to("copy")
    (root / "folder.py").unlink()
    (root / "folder.py").mkdir()
    os.rename(root / "d", root / "moved")
    (root / "d").symlink_to("moved")
    assert changed_files(tree, root) == tuple(sorted(set(names) - {"same.py"}))


def test_a_file_that_its_owner_may_not_read_any_more_has_changed(root: Path) -> None:
    tree = Tree.of({"f": "x"})
    write_tree(tree, root)
    (root / "f").chmod(0o200)
    assert changed_files(tree, root) == ("f",)


def test_files_in_a_closed_folder_and_in_a_replaced_root_have_changed(root: Path) -> None:
    tree = Tree.of({"d/f": "x", "g": "y", "m.pyc": "z"})
    write_tree(tree, root)
    (root / "d").chmod(0o600)
    assert changed_files(tree, root) == ("d/f",)
    (root / "d").chmod(0o755)
    (root.parent / "link").symlink_to(root)
    assert changed_files(tree, root.parent / "link") == ("d/f", "g")


def test_a_closed_root_is_opened_again_but_never_through_a_link(root: Path) -> None:
    root.chmod(0o000)
    (root.parent / "link").symlink_to(root)
    reopen(root.parent / "link")
    assert root.stat().st_mode & 0o777 == 0
    reopen(root)
    assert root.stat().st_mode & 0o777 == 0o755


def test_disk_usage_counts_stored_bytes_and_entries_and_stops_early(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/big").write_bytes(b"x" * 100_000)
    (root / "link").symlink_to("/usr")
    with open(root / "sparse", "wb") as file:
        file.truncate(1 << 30)
    usage = disk_usage(root, 1 << 40)
    assert 100_000 < usage < 200_000
    assert disk_usage(root, 10) > 10
    assert disk_usage(root / "none", 10) == 0


def test_closed_and_very_deep_directories_are_removed(root: Path) -> None:
    here = os.open(root, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    (root / "closed/in").mkdir(parents=True)
    (root / "closed/in").chmod(0o000)
    (root / "closed").chmod(0o000)
    remove_tree(root)
    assert not root.exists()
