package browser

// basics is an expression of JavaScript: a list of faults, as JSON. Contrast follows WCAG 2, level AA: 4.5 for text, 3 for
// large text.
const basics = `JSON.stringify((() => {
	const found = [];
	const parse = (c) => {
		const n = c.match(/[\d.]+/g).map(Number);
		return { rgb: n.slice(0, 3), alpha: n[3] ?? 1 };
	};
	const luminance = (rgb) => {
		const [r, g, b] = rgb.map((x) => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = parse(getComputedStyle(e).backgroundColor);
			if (c.alpha === 1) return c.rgb;
		}
		return [255, 255, 255];
	};
	const contrast = (a, b) => {
		const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
		return (high + 0.05) / (low + 0.05);
	};
	const visible = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest(".visually-hidden, .skip");
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const e = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
		if (!text || ["SCRIPT", "NOSCRIPT", "STYLE"].includes(e.tagName) || !visible(e)) continue;
		const style = getComputedStyle(e), size = parseFloat(style.fontSize);
		const colour = parse(e instanceof SVGElement ? style.fill : style.color);
		const wanted = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5, has = contrast(colour.rgb, behind(e));
		if (has < wanted) found.push("contrast " + has.toFixed(2) + " of " + JSON.stringify(text.slice(0, 40)));
		if (size < 11) found.push("text of " + size + " px: " + JSON.stringify(text.slice(0, 40)));
	}
	if (document.documentElement.lang === "") found.push("the page has no language");
	if (document.querySelectorAll("h1").length !== 1) found.push("the page has not one h1");
	let level = 0;
	for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
		const now = Number(h.tagName[1]);
		if (now > level + 1) found.push("heading " + h.textContent + " skips a level");
		level = now;
	}
	const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
	for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push("id " + id + " occurs twice");
	for (const e of document.querySelectorAll("[aria-labelledby], [aria-describedby]")) {
		for (const id of ((e.getAttribute("aria-labelledby") ?? "") + " " + (e.getAttribute("aria-describedby") ?? "")).trim().split(/\s+/)) {
			if (!document.getElementById(id)) found.push("a name refers to " + id);
		}
	}
	for (const e of document.querySelectorAll("button, a, select, summary, [role=img], [role=application], [role=region]")) {
		if (!visible(e)) continue;
		const name = e.getAttribute("aria-label") ?? (e.getAttribute("aria-labelledby") || e.closest("label") || e.textContent.trim() ? "named" : "");
		if (!name) found.push(e.tagName + " has no name: " + e.outerHTML.slice(0, 80));
	}
	for (const e of document.querySelectorAll("img")) if (!e.hasAttribute("alt")) found.push("an image has no text");
	for (const e of document.querySelectorAll("th")) if (!e.scope) found.push("a heading of a table has no scope: " + e.textContent);
	for (const e of document.querySelectorAll("button, select, summary")) {
		const box = e.getBoundingClientRect();
		if (visible(e) && (box.height < 24 || box.width < 24)) found.push("a control of " + Math.round(box.width) + " by " + Math.round(box.height) + ": " + e.textContent.trim());
	}
	return found;
})())`
