"""The program in an answer, however it is laid out: fenced, in prose, indented, or plain."""

import ast
import builtins
import re
import textwrap

MAX_PARSES = 1500
MAX_STATEMENT_LINES = 400

_MARK = re.compile(r"i\s+want\s+to\s+answer\s*[*_]*:[*_]*", re.I)
_FENCE = re.compile(r"^[ \t>]*(```+|~~~+)[ \t]*[\w+#.{}=-]*[ \t]*$")
_INLINE = re.compile(r"```+[ \t]*(?:python\d?|py\d?)?[ \t]*\n?(.*?)```+|`([^`\n]+)`", re.S | re.I)
_CODE_LINE = re.compile(
    r"(async |def |class |import |from |@|if |for |while |with |try\s*:|[A-Za-z_][\w.\[\]'\", ]*"
    r"(\s*:[^=]+)?\s*[-+*/|&]?=|[A-Za-z_][\w.]*\()"
)
_CONTINUES = re.compile(r"(else|elif|except|finally|case)\b")
_INVISIBLE = dict.fromkeys(map(ord, "\ufeff\u200b\u200c\u200d\u2060"), None) | {0xA0: " "}


def extract(answer: str, names: list[str]) -> ast.Module:
    """The module in `answer` that defines `names`.

    The whole text where it is a program; else the last fenced block that defines them (with what
    it needs from the other blocks); else the statements found between lines of prose. Where
    nothing defines them, the best program there is. Raises: SyntaxError where there is none.
    """
    search = _Search(names)
    fallback = None
    for text in _readings(answer):
        for module in search.programs(text):
            if names and set(names) <= bound(module):
                return module
            if fallback is None and module.body and not search.broken(text, module):
                fallback = module
    if fallback is not None:
        return fallback
    for text in _readings(answer):
        _empty_or_error(text)
    raise SyntaxError("there is no program in the answer")


def _readings(answer: str):
    """The texts to look in: after the answer mark, as written, without invisible characters."""
    plain = answer.replace("\r\n", "\n").replace("\r", "\n")
    after_mark = _MARK.split(plain)[-1]
    seen = {after_mark}
    yield after_mark
    for text in (plain, after_mark.translate(_INVISIBLE), plain.translate(_INVISIBLE)):
        if text not in seen:
            seen.add(text)
            yield text


def _empty_or_error(text: str) -> None:
    if text.strip():
        ast.parse(textwrap.dedent(text))


class _Search:
    """Finds programs in a text; counts its parses so that no text takes for ever."""

    def __init__(self, names: list[str]):
        self._names = set(names)
        self._parses = 0

    def programs(self, text: str):
        """Candidates, the likeliest first."""
        whole = self._parse(text)
        if whole:
            yield whole
        fenced = blocks(text)
        parsed = [self._parse(b) or self._between_prose(b) for b in fenced]
        yield from self._joined([p for p in parsed if p])
        yield self._between_prose("\n".join(_without_fences(text)))
        if "`" in text:
            inline = [self._parse(a or b) for a, b in _INLINE.findall(text)]
            yield from self._joined([p for p in inline if p])

    def broken(self, text: str, module: ast.Module) -> bool:
        """Whether the text begins a definition of a wanted name that `module` could not keep."""
        lost = self._names - bound(module)
        return any(re.search(rf"\b(def|class)\s+{re.escape(name)}\b", text) for name in lost)

    def _joined(self, modules: list[ast.Module]):
        """From the last to the first, each with the other blocks it needs names of."""
        last_first = modules[::-1]
        for chosen in sorted(last_first, key=lambda m: not self._names <= bound(m)):
            body, missing, used = list(chosen.body), _unbound(chosen), {id(chosen)}
            for other in last_first:
                if id(other) not in used and missing & (bound(other) - self._names):
                    used.add(id(other))
                    body = other.body + body
                    missing |= _unbound(other)
            yield ast.Module(body, [])

    def _parse(self, text: str) -> ast.Module | None:
        self._parses += 1
        if self._parses > MAX_PARSES:
            return None
        try:
            module = ast.parse(text if text[:1].strip() else textwrap.dedent(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        module.body = [s for s in module.body if not _is_prose(s)]
        return module

    def _between_prose(self, text: str) -> ast.Module:
        """The statements of `text`, line by line, leaving out what is no statement."""
        lines = text.split("\n")
        body, at = [], 0
        while at < len(lines):
            found, end = None, at + 1
            if _CODE_LINE.match(lines[at].lstrip()):
                found, end = self._statement(lines, at)
            body += found.body if found else []
            at = end
        return ast.Module(body, [])

    def _statement(self, lines: list[str], start: int) -> tuple[ast.Module | None, int]:
        """The statement that begins on line `start`, and the line after it."""
        indent = len(lines[start]) - len(lines[start].lstrip())
        found, after = None, start + 1
        for end in range(start + 1, min(len(lines), start + MAX_STATEMENT_LINES) + 1):
            nxt = lines[end] if end < len(lines) else ""
            deeper = len(nxt) - len(nxt.lstrip()) > indent
            if end < len(lines) and (deeper or not nxt.strip()):
                continue
            module = self._parse("\n".join(lines[start:end]))
            if module:
                found, after = module, end
            if found and not _CONTINUES.match(nxt.lstrip()):
                break
        return found, after


def blocks(text: str) -> list[str]:
    """The fenced blocks, without their fences; an unclosed last one counts."""
    found: list[list[str]] = []
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if match and not fence:
            fence = match[1]
            found.append([])
        elif match and match[1].startswith(fence[0] * 3) and line.strip(" \t>") == match[1]:
            fence = ""
        elif fence:
            found[-1].append(line)
    return ["\n".join(block) for block in found]


def _without_fences(text: str) -> list[str]:
    return [line for line in text.split("\n") if not _FENCE.match(line)]


def _is_prose(statement: ast.stmt) -> bool:
    """A word, or `Note: word`: parses, but does nothing except fail when it is run."""
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None
    if not isinstance(statement, ast.Expr):
        return False
    words = (ast.Name, ast.Tuple, ast.Attribute, ast.Load, ast.Compare, ast.BoolOp, ast.UnaryOp,
             ast.boolop, ast.unaryop, ast.cmpop, ast.BinOp, ast.operator)  # fmt: skip
    return all(isinstance(n, words) for n in ast.walk(statement.value))


def bound(module: ast.Module) -> set[str]:
    """The names that the module's top level binds, also under if, try, with and loops."""
    names: set[str] = set()
    todo: list[ast.AST] = list(module.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        todo += ast.iter_child_nodes(node)
    return names


def _unbound(module: ast.Module) -> set[str]:
    """Names that the module uses and nothing in it binds."""
    used: set[str] = set()
    own = bound(module) | set(dir(builtins))
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else own).add(node.id)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.alias):
            own.add((node.asname or node.name).split(".")[0])
    return used - own
