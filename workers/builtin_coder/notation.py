"""Reading Python expressions as notation: what is a literal, a call, an expected value."""

from __future__ import annotations

import ast
import builtins

MAX_EXPRESSION_CHARS = 2_000
_CONSTRUCTORS = frozenset({"set", "frozenset", "float", "tuple", "list", "dict", "bytes"})
_PLAIN = (
    ast.Expression,
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Dict,
    ast.UnaryOp,
    ast.USub,
    ast.UAdd,
    ast.Load,
)
_APPLIED = (
    *_PLAIN,
    ast.Call,
    ast.keyword,
    ast.Name,
    ast.Attribute,
    ast.BinOp,
    ast.operator,
    ast.Subscript,
    ast.Slice,
    ast.Compare,
    ast.cmpop,
    ast.Starred,
)


def parse_expression(text: str) -> ast.expr | None:
    """Parse one expression without evaluating it; None when it is not one or is too long."""
    text = text.strip()
    if not text or len(text) > MAX_EXPRESSION_CHARS:
        return None
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def is_value(text: str) -> bool:
    """Tell whether a text is a literal, or a constructor such as `set()` applied to literals."""
    tree = parse_expression(text)
    return tree is not None and _value(tree)


def _value(tree: ast.expr) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            return False
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id not in _CONSTRUCTORS:
                return False
        elif isinstance(node, ast.Name):
            if node.id not in _CONSTRUCTORS:
                return False
        elif isinstance(node, ast.BinOp):
            if not _complex_literal(node):
                return False
        elif not isinstance(node, (*_PLAIN, ast.keyword, ast.operator)):
            return False
    return not isinstance(tree, ast.Name)


def _complex_literal(node: ast.BinOp) -> bool:
    return isinstance(node.right, ast.Constant) and isinstance(node.right.value, complex)


def is_application(text: str) -> bool:
    """Tell whether a text is calls, literals and operators only (safe to quote in a test)."""
    tree = parse_expression(text)
    if tree is None or not any(isinstance(node, ast.Call) for node in ast.walk(tree)):
        return False
    return all(
        isinstance(node, _APPLIED)
        and not (isinstance(node, ast.Constant) and node.value is Ellipsis)
        and not (isinstance(node, ast.Attribute) and node.attr.startswith("__"))
        for node in ast.walk(tree)
    )


def called_names(text: str) -> tuple[str, ...]:
    """Names that an expression calls or calls a method of, without Python's own, in order."""
    tree = parse_expression(text)
    if tree is None:
        return ()
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            root: ast.expr = node.func
            while isinstance(root, (ast.Attribute, ast.Call)):
                root = root.value if isinstance(root, ast.Attribute) else root.func
            if isinstance(root, ast.Name) and not hasattr(builtins, root.id):
                names.append(root.id)
    return tuple(dict.fromkeys(names))


def free_names(text: str) -> frozenset[str]:
    """Names that an expression reads without calling them or their methods, but Python's own."""
    tree = parse_expression(text)
    if tree is None:
        return frozenset()
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return frozenset(n for n in names - set(called_names(text)) if not hasattr(builtins, n))


def call_end(text: str, start: int) -> int:
    """Find the end of the call whose name starts at `start`; -1 when its brackets do not close."""
    depth, quote, position = 0, "", start
    while position < len(text):
        char = text[position]
        if quote:
            if char == "\\":
                position += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                return -1
            following = text[position + 1 : position + 2]
            if depth == 0 and following not in (".", "(", "["):
                return position + 1
            if depth == 0 and following == "." and not text[position + 2 : position + 3].isalpha():
                return position + 1
        position += 1
    return -1


def normal(text: str) -> str:
    """Spell an expression in one way, so that two spellings of it compare equal."""
    tree = parse_expression(text)
    return ast.unparse(tree) if tree is not None else " ".join(text.split())


def equal_values(left: str, right: str) -> bool:
    """Compare two value texts as values when both are literals, else as spellings."""
    try:
        return bool(ast.literal_eval(left.strip()) == ast.literal_eval(right.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return normal(left) == normal(right)
