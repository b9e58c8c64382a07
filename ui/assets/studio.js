/* The studio's few lines in the browser: light and dark, what a person does inside our own markup,
   the keys of the replay and of a vote. Everything else is done by the server. */
(() => {
  // Light and dark: the person's choice, else the system's.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (localStorage.getItem("studio-theme") || (system.matches ? "dark" : "light")) === "dark";
  const paint = () => {
    if (document.body.classList.contains("dark") !== dark()) document.body.classList.toggle("dark", dark());
  };
  const ready = () => {
    document.documentElement.lang = "en";
    paint();
    new MutationObserver(paint).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  };
  system.addEventListener("change", paint);
  if (document.body) ready(); else addEventListener("DOMContentLoaded", ready);

  // A name that says nothing: who votes with this browser votes once.
  if (!/(^|; )studio-voter=[0-9a-f]{32}/.test(document.cookie)) {
    const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
    const name = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
    document.cookie = `studio-voter=${name}; path=/; max-age=31536000; samesite=lax`;
  }

  const saying = (button, text) => {
    const name = button.dataset.name ??= button.textContent;
    button.textContent = text;
    setTimeout(() => { button.textContent = name; }, 1500);
  };
  const copy = (button, text) =>
    navigator.clipboard.writeText(text).then(() => saying(button, "Copied"), () => saying(button, "Not allowed"));

  // What is done here, without the server.
  const local = {
    theme: () => {
      localStorage.setItem("studio-theme", dark() ? "light" : "dark");
      paint();
    },
    copy: (button) => copy(button, button.parentElement.querySelector("code").textContent),
    unfold: (button) => {
      const form = document.getElementById(button.getAttribute("aria-controls"));
      form.hidden = !form.hidden;
      button.setAttribute("aria-expanded", !form.hidden);
      if (!form.hidden) form.querySelector("textarea, input").focus();
    },
    link: (button) => copy(button, location.href),
    first: (button) => walk(button, () => 1),
    previous: (button) => walk(button, (at) => at - 1),
    next: (button) => walk(button, (at) => at + 1),
    last: (button) => walk(button, () => Infinity),
    goto: (button) => walk(button, () => Number(button.dataset.to)),
    play: (button) => play(button),
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-action]");
    local[button?.dataset.action]?.(button);
  });

  // The address follows what is shown, so that a reload or a link shows it again.
  const address = (query) => {
    const url = location.pathname + (query ? "?" + query : "");
    if (url !== location.pathname + location.search) history.replaceState(history.state, "", url);
  };

  // Replay: the turns up to the current one are shown.
  const show = (replay, wanted) => {
    const steps = [...replay.querySelectorAll("[data-step]")];
    const at = Math.min(Math.max(1, wanted), Math.max(1, steps.length));
    replay.dataset.turn = at;
    steps.forEach((step, i) => {
      step.hidden = i >= at;
      if (i === at - 1) step.setAttribute("aria-current", "step"); else step.removeAttribute("aria-current");
    });
    replay.querySelector(".at-end").hidden = at < steps.length;
    for (const mark of replay.querySelectorAll("[data-to]")) {
      if (Number(mark.dataset.to) === at) mark.setAttribute("aria-current", "step");
      else mark.removeAttribute("aria-current");
    }
    const where = replay.querySelector(".where");
    if (where) where.textContent = `Turn ${at} of ${steps.length}`;
    for (const name of ["first", "previous"]) set(replay, name, at === 1);
    for (const name of ["next", "last"]) set(replay, name, at >= steps.length);
    const query = new URLSearchParams(replay.dataset.address);
    if (query.has("episode")) query.set("turn", at);
    address(query.toString());
  };
  const set = (replay, action, off) => {
    const button = replay.querySelector(`[data-action="${action}"]`);
    if (button) button.disabled = off;
  };
  const walk = (button, to) => {
    const replay = button.closest(".replay");
    show(replay, to(Number(replay.dataset.turn)));
    const step = replay.querySelector("[data-step][aria-current]");
    step?.scrollIntoView({ block: "nearest" });
  };
  let playing = null;
  const play = (button) => {
    const replay = button.closest(".replay");
    const stop = () => {
      clearInterval(playing);
      playing = null;
      button.textContent = "Play";
    };
    if (playing) return stop();
    if (replay.querySelector('[data-action="next"]').disabled) show(replay, 1);
    button.textContent = "Pause";
    playing = setInterval(() => {
      const next = replay.isConnected && replay.querySelector('[data-action="next"]');
      if (!next || next.disabled) stop(); else next.click();
    }, 1500);
  };

  // Keys of the replay and of a vote: silent while somebody types, and where a modifier is held.
  const keys = { ArrowLeft: "previous", k: "previous", ArrowRight: "next", j: "next",
                 Home: "first", End: "last", p: "play" };
  const typing = "input, textarea, select, [contenteditable], [role=listbox], [role=option], [role=tab]";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.target.closest?.(typing)) return;
    const action = keys[event.key];
    const button = document.querySelector(action ? `.replay-keys [data-action="${action}"]`
      : `[data-press="${CSS.escape(event.key)}"]`);
    if (!button?.offsetParent || event.repeat && !action) return;
    event.preventDefault();
    if (!button.disabled) button.click();
  });

  // What is done in our own markup and is for the server: clicks on [data-action], forms.
  const fields = (form) => {
    const data = new FormData(form);
    return { ...form.dataset, text: data.get("text"), comment: data.get("comment"),
             own: data.get("own"), tags: data.getAll("tags"), rating: data.get("rating") };
  };
  const bind = (element, trigger, watch) => {
    let key = null; // of what had the focus before the server drew anew
    element.addEventListener("click", (event) => {
      const target = event.target.closest("button[data-action], a[data-action]");
      if (!target || target.dataset.action in local || target.disabled) return;
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      key = target.dataset.key || null;
      trigger("click", { ...target.dataset });
    });
    element.addEventListener("change", (event) => {
      const select = event.target.closest("select[data-action]");
      if (!select) return;
      key = select.dataset.key || null;
      const { turn } = select.closest(".replay")?.dataset ?? {};
      trigger("click", { ...select.dataset, value: select.value, turn });
    });
    element.addEventListener("submit", (event) => {
      event.preventDefault();
      key = event.target.dataset.key || null;
      trigger("click", fields(event.target));
    });
    const drawn = () => {
      const replay = element.querySelector(".replay");
      const shown = element.querySelector("[data-address]");
      window.studio.designs(element);
      if (replay) show(replay, Number(replay.dataset.turn));
      else if (shown) address(shown.dataset.address);
      if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
      key = null;
    };
    watch("value", drawn);
    drawn();
  };

  // Keep the message that is being spoken in view, unless the reader has scrolled up.
  const follow = (element, watch) => {
    let near = true;
    const measure = () => { near = innerHeight + scrollY > document.documentElement.scrollHeight - 240; };
    addEventListener("scroll", measure, { passive: true });
    watch("value", () => {
      if (near) element.querySelector(".live")?.scrollIntoView({ block: "nearest" });
    });
  };

  window.studio = { bind, follow };
})();
