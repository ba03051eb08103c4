/** Requests that a browser sends on behalf of another site are refused where credentials are not proof of intent. */
import { AppError } from "./error.ts";

/**
 * Throws 403 `forbidden_origin` unless the request comes from a page of this server or from no page at all. Browsers
 * send `Sec-Fetch-Site` and, for requests that change something, `Origin`; other clients send neither.
 */
export function checkSameOrigin(request: Request): void {
  const site = request.headers.get("sec-fetch-site");
  const origin = request.headers.get("origin");
  const foreignSite = site !== null && site !== "same-origin" && site !== "none";
  const foreignOrigin = origin !== null && hostOf(origin) !== request.headers.get("host");
  if (foreignSite || foreignOrigin) {
    throw new AppError("forbidden_origin", "Requests from pages of other origins are refused.");
  }
}

function hostOf(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : "";
}
