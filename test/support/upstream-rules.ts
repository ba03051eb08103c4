/** What the strict upstream accepts: the published request shapes of the three formats, and what servers say when they refuse. */

type Body = Record<string, unknown>;
export type Roles = "anywhere" | "first-only" | "none";
export interface Rules {
  roles: Roles;
  developer: boolean;
  streamOptions: boolean;
  /** Fields beyond the published ones that this server takes. */
  extra: string[];
}

const isObject = (value: unknown): value is Body =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const list = (value: unknown): Body[] => (Array.isArray(value) ? (value as Body[]) : []);

const chatFields =
  "model messages stream stream_options temperature top_p n stop max_tokens max_completion_tokens presence_penalty frequency_penalty logit_bias user tools tool_choice parallel_tool_calls response_format seed logprobs top_logprobs metadata store reasoning_effort modalities audio prediction service_tier functions function_call web_search_options safety_identifier prompt_cache_key prompt_cache_retention verbosity".split(
    " ",
  );
const responsesFields =
  "model input instructions stream stream_options temperature top_p max_output_tokens max_tool_calls tools tool_choice parallel_tool_calls previous_response_id conversation store metadata reasoning text truncation user include background service_tier safety_identifier prompt_cache_key prompt_cache_retention prompt top_logprobs context_management client_metadata".split(
    " ",
  );
const messagesFields =
  "model messages system max_tokens metadata stop_sequences stream temperature top_k top_p tools tool_choice thinking container context_management mcp_servers service_tier cache_control output_config output_format inference_geo".split(
    " ",
  );

/** The sentence of the first rule that a body breaks, or null. */
export function problem(path: string, body: unknown, rules: Rules): string | null {
  if (!isObject(body)) return "The body is not an object.";
  if (path.endsWith("/chat/completions"))
    return fields(body, [...chatFields, ...rules.extra]) ?? chat(body, rules);
  if (path.endsWith("/responses"))
    return fields(body, [...responsesFields, ...rules.extra]) ?? responses(body, rules);
  if (path.endsWith("/messages") || path.endsWith("/count_tokens")) {
    return (
      fields(body, [...messagesFields, ...rules.extra]) ?? messages(body, path.endsWith("/count_tokens"))
    );
  }
  return null;
}

function fields(body: Body, known: string[]): string | null {
  const unknown = Object.keys(body).find((name) => !known.includes(name));
  if (unknown) return `Unrecognized request argument supplied: ${unknown}`;
  return typeof body["model"] === "string" && !body["model"].startsWith("test/")
    ? null
    : "The model does not exist.";
}

function chat(body: Body, rules: Rules): string | null {
  const all = list(body["messages"]);
  if (all.length === 0) return "messages: must not be empty";
  if (body["stream_options"] !== undefined) {
    if (!rules.streamOptions) return "Unrecognized request argument supplied: stream_options";
    if (body["stream"] !== true)
      return "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
  }
  let waiting: string[] = [];
  for (const [at, message] of all.entries()) {
    const extra = Object.keys(message).find(
      (name) =>
        ![
          "role",
          "content",
          "name",
          "tool_calls",
          "tool_call_id",
          "refusal",
          "audio",
          "reasoning_content",
          "function_call",
          "annotations",
        ].includes(name),
    );
    if (extra) return `messages.${at}: unknown field ${extra}`;
    const { role, content } = message;
    if (role === "tool") {
      const id = String(message["tool_call_id"]);
      if (!waiting.includes(id))
        return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'";
      waiting = waiting.filter((one) => one !== id);
      continue;
    }
    if (waiting.length > 0) return "An assistant message with 'tool_calls' must be followed by tool messages";
    if (role === "assistant") waiting = list(message["tool_calls"]).map((call) => String(call["id"]));
    else if (role === "developer" && !rules.developer) return "Invalid role: developer";
    else if (role === "system" || role === "developer") {
      if (rules.roles === "none") return "Role 'system' is not supported by this model.";
      if (rules.roles === "first-only" && at > 0) return "System message must be at the beginning.";
    } else if (role !== "user") return `Invalid role: ${String(role)}`;
    else if (rules.roles !== "anywhere" && all[at - 1]?.["role"] === "user") {
      return "Conversation roles must alternate user/assistant/user/assistant/...";
    }
    const bad = partProblem(
      content,
      ["text", "image_url", "input_audio", "file", "refusal"],
      role === "assistant",
    );
    if (bad) return `messages.${at}.content: ${bad}`;
  }
  return waiting.length > 0
    ? "An assistant message with 'tool_calls' must be followed by tool messages"
    : null;
}

function partProblem(content: unknown, types: string[], mayBeNull: boolean): string | null {
  if (typeof content === "string" || (content == null && mayBeNull)) return null;
  if (!Array.isArray(content) || content.length === 0) return "must be a string or parts";
  for (const part of content as unknown[]) {
    if (!isObject(part) || !types.includes(String(part["type"]))) return "unknown part type";
    if (typeof part["text"] === "string" && part["text"] === "") return "text parts must not be empty";
  }
  return null;
}

function responses(body: Body, rules: Rules): string | null {
  const { input } = body;
  if (typeof input === "string") return input === "" ? "input: must not be empty" : null;
  if (!Array.isArray(input) || input.length === 0) return "input: must be a string or items";
  const calls = new Set<string>();
  let open: string | null = null;
  for (const item of input as Body[]) {
    const type = typeof item["type"] === "string" ? item["type"] : "message";
    if (type === "function_call" || type === "custom_tool_call" || type === "local_shell_call") {
      calls.add(String(item["call_id"]));
      open = String(item["call_id"]);
    } else if (type.endsWith("_call_output")) {
      if (!calls.has(String(item["call_id"])) && body["previous_response_id"] === undefined) {
        return `No tool call found for function call output with call_id ${String(item["call_id"])}.`;
      }
      open = null;
    } else if (type === "message") {
      if (open) return `No tool output found for function call ${open}.`;
      const role = item["role"];
      if (!["user", "assistant", "system", "developer"].includes(String(role)))
        return `Invalid role: ${String(role)}`;
      if (role === "system" && rules.roles === "none") return "Role 'system' is not supported by this model.";
      const bad = partProblem(
        item["content"],
        ["input_text", "output_text", "input_image", "input_file", "refusal"],
        false,
      );
      if (bad) return bad;
    } else if (!["reasoning", "item_reference", "compaction", "web_search_call"].includes(type))
      return `Unknown item type: ${type}`;
  }
  return null;
}

function messages(body: Body, counting: boolean): string | null {
  if (!counting && typeof body["max_tokens"] !== "number") return "max_tokens: Field required";
  const bad = body["system"] === undefined ? null : partProblem(body["system"], ["text"], false);
  if (bad) return `system: ${bad}`;
  let waiting: string[] = [];
  let marks = JSON.stringify([body["system"], body["tools"]]).split('"cache_control"').length - 1;
  for (const [at, message] of list(body["messages"]).entries()) {
    marks += JSON.stringify(message).split('"cache_control"').length - 1;
    const { role, content } = message;
    if (role !== "user" && role !== "assistant")
      return `messages.${at}.role: Input should be 'user' or 'assistant'`;
    if (at === 0 && role !== "user") return "messages: first message must use the user role";
    const wrong = partProblem(
      content,
      [
        "text",
        "image",
        "document",
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
      ],
      false,
    );
    if (wrong) return `messages.${at}.content: ${wrong}`;
    const blocks = typeof content === "string" ? [{ type: "text" }] : list(content);
    if (role === "assistant") {
      waiting = blocks.filter((block) => block["type"] === "tool_use").map((block) => String(block["id"]));
      continue;
    }
    const results = blocks.filter((block) => block["type"] === "tool_result");
    const firstOther = blocks.findIndex((block) => block["type"] !== "tool_result");
    if (firstOther >= 0 && blocks.findLastIndex((block) => block["type"] === "tool_result") > firstOther) {
      return `messages.${at}: tool_result blocks must come first`;
    }
    const answered = results.map((block) => String(block["tool_use_id"]));
    if (waiting.some((id) => !answered.includes(id))) {
      return `messages.${at - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after`;
    }
    if (answered.some((id) => !waiting.includes(id)))
      return `messages.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks`;
    waiting = [];
  }
  return marks > 4 ? "A maximum of 4 blocks with cache_control may be provided." : null;
}
