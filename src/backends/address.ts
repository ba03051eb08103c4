/** Where a Qdrant server is, from what was typed. */

/** `http(s)://host:port[/prefix]` of a name or URL, or null when it is neither. A URL's own port wins. */
export function addressOf(hostName: string, port: number): string | null {
  const text = hostName.trim();
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  if (
    !url ||
    !["http:", "https:"].includes(url.protocol) ||
    url.hostname === "" ||
    url.username !== "" ||
    url.search !== ""
  )
    return null;
  // `URL` drops a port that is its protocol's default, so the written text decides whether one was given.
  const given = /:(\d+)(?:\/|$)/.exec(text.replace(/^[a-z]+:\/\//i, ""))?.[1];
  return `${url.protocol}//${url.hostname}:${given ?? port}${url.pathname === "/" ? "" : url.pathname.replace(/\/+$/, "")}`;
}
