/* Designs: which version, view and width of a design is shown. Frames and pictures are scaled to
   their place; what is shown stays when the server draws the panel anew, and a new version comes
   to the front. */
(() => {
  const states = new Map();
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const state = (root) => states.get(root.dataset.design);

  const show = (root, change = {}) => {
    const versions = all(root, "[data-version]");
    const before = state(root);
    const now = { view: "preview", width: innerWidth < 640 ? 375 : 1280, at: versions.length, ...before, ...change };
    if (before && before.count !== versions.length) now.at = versions.length;
    now.count = versions.length;
    now.at = Math.min(Math.max(1, now.at), Math.max(1, versions.length));
    states.set(root.dataset.design, now);
    versions.forEach((version, i) => {
      version.hidden = i !== now.at - 1;
      const frame = i === now.at - 1 && version.querySelector("iframe");
      if (frame) frame.loading = "eager"; // the others wait until they are looked at
      for (const view of all(version, "[data-view]")) view.hidden = view.dataset.view !== now.view;
    });
    for (const button of all(root, "[data-do][data-value]"))
      button.setAttribute("aria-pressed", button.dataset.value === String(now[button.dataset.do]));
    const where = root.querySelector(".pager .where");
    if (where) {
      const text = `Version ${now.at} of ${versions.length}`;
      if (where.textContent !== text) where.textContent = text;
      root.querySelector('[data-do="back"]').disabled = now.at === 1;
      root.querySelector('[data-do="on"]').disabled = now.at === versions.length;
    }
    for (const picture of all(root, "img[data-picture]")) {
      const address = `./pages/${picture.dataset.picture}-${now.width}.png`;
      if (picture.getAttribute("src") !== address) picture.src = address;
    }
    fit(root);
  };

  // A page is laid out at the width that was chosen, and then made small enough for its place.
  const fit = (root) => {
    const { width } = state(root);
    for (const sheet of all(root, ".sheet")) {
      if (!sheet.clientWidth) continue;
      const scale = Math.min(1, sheet.clientWidth / width);
      sheet.style.setProperty("--width", `${width}px`);
      sheet.style.setProperty("--scale", scale);
      sheet.style.setProperty("--shown", `${width * scale}px`);
    }
  };
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) if (target.isConnected) fit(target);
  });

  const acts = {
    view: (root, { value }) => show(root, { view: value }),
    width: (root, { value }) => show(root, { width: Number(value) }),
    back: (root) => show(root, { at: state(root).at - 1 }),
    on: (root) => show(root, { at: state(root).at + 1 }),
    goto: (root, { value }) => {
      show(root, { at: Number(value) });
      root.scrollIntoView({ block: "nearest" });
    },
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-do]");
    if (!button) return;
    const root = button.closest("[data-design]") ?? document.querySelector("[data-design]");
    if (root) acts[button.dataset.do]?.(root, button.dataset);
  });
  document.addEventListener("input", (event) => {
    if (!event.target.matches?.(".design .range input")) return;
    const over = event.target.closest("[data-view]").querySelector(".both");
    over.style.setProperty("--at", `${event.target.value}%`);
  });

  // A picture that can't be had says why.
  document.addEventListener("error", async (event) => {
    const picture = event.target;
    if (!picture.matches?.("img[data-picture]") || picture.dataset.failed === picture.src) return;
    picture.dataset.failed = picture.src;
    const answer = await fetch(picture.src).catch(() => null);
    picture.alt = answer && !answer.ok ? await answer.text() : "The picture could not be fetched.";
  }, true);

  window.studio.designs = (element) => {
    for (const root of all(element, "[data-design]")) {
      show(root);
      sizes.observe(root);
    }
  };
})();
