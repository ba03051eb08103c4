/**
 * The model server of `bench:proxy`, a process of its own: raw sockets with TCP_NODELAY, so that it costs little beside
 * what is measured. The path says how it answers: `/l20/…` waits 20 ms; a stream sends `frames` events every `every` ms.
 * Events carry the monotonic time at which they were sent, in microseconds.
 */
import type { Socket } from "bun";

type State = { rest: string };
const args = new Map(process.argv.slice(2).map((arg) => arg.split("=") as [string, string]));
const frames = Number(args.get("frames") ?? 100);
const every = Number(args.get("every") ?? 5);
const micros = () => Number(process.hrtime.bigint() / 1000n);

const json = {
  chat: JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "All of that is noted, thank you." },
        finish_reason: "stop",
      },
    ],
    usage: { prompt_tokens: 20, completion_tokens: 8, total_tokens: 28 },
  }),
  responses: JSON.stringify({
    id: "resp_1",
    object: "response",
    status: "completed",
    output: [
      {
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "All of that is noted, thank you." }],
      },
    ],
    usage: { input_tokens: 20, output_tokens: 8, total_tokens: 28 },
  }),
  messages: JSON.stringify({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: "All of that is noted, thank you." }],
    stop_reason: "end_turn",
    usage: { input_tokens: 20, output_tokens: 8 },
  }),
};
type Wire = keyof typeof json;

/** One event of a stream: its index, when it was sent, and a token. */
function event(wire: Wire, index: number): string {
  const t = micros();
  if (wire === "chat")
    return `data: {"id":"chatcmpl-1","t":${t},"choices":[{"index":0,"delta":{"content":" token${index}"},"finish_reason":null}]}\n\n`;
  if (wire === "responses")
    return `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","t":${t},"delta":" token${index}"}\n\n`;
  return `event: content_block_delta\ndata: {"type":"content_block_delta","t":${t},"index":0,"delta":{"type":"text_delta","text":" token${index}"}}\n\n`;
}
const last: Record<Wire, string> = {
  chat: 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  responses:
    'event: response.completed\ndata: {"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
  messages:
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
};
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

function answer(socket: Socket<State>, path: string, body: string): void {
  const wait = Number(/^\/l(\d+)\//.exec(path)?.[1] ?? 0);
  if (path.endsWith("/models")) {
    const text = '{"object":"list","data":[{"id":"m"}]}';
    socket.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
    );
    return;
  }
  const wire: Wire = path.endsWith("/responses")
    ? "responses"
    : path.endsWith("/messages")
      ? "messages"
      : "chat";
  const go = body.includes('"stream":true') ? () => stream(socket, wire) : () => whole(socket, wire);
  if (wait === 0) go();
  else setTimeout(go, wait);
}

function whole(socket: Socket<State>, wire: Wire): void {
  const text = json[wire];
  socket.write(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

function stream(socket: Socket<State>, wire: Wire): void {
  let index = 0;
  socket.write(
    `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${chunk(event(wire, index++))}`,
  );
  const timer = setInterval(() => {
    if (index < frames) socket.write(chunk(event(wire, index++)));
    else {
      clearInterval(timer);
      socket.write(`${chunk(last[wire])}0\r\n\r\n`);
    }
  }, every);
}

const server = Bun.listen<State>({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    open(socket) {
      socket.data = { rest: "" };
      socket.setNoDelay(true);
    },
    data(socket, bytes) {
      let text = socket.data.rest + bytes.toString("latin1");
      for (;;) {
        const end = text.indexOf("\r\n\r\n");
        if (end < 0) break;
        const head = text.slice(0, end);
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (text.length < end + 4 + length) break;
        answer(socket, head.split(" ", 2)[1]!, text.slice(end + 4, end + 4 + length));
        text = text.slice(end + 4 + length);
      }
      socket.data.rest = text;
    },
    error() {},
  },
});
process.stdout.write(`${server.port}\n`);
