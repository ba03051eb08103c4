/** Gives the provider's bytes to the client as they come, with the capture beside them, never in their way. */
import type { Wire } from "../memory/conversation.ts";
import { AppError } from "../error.ts";
import type { Answer } from "../upstream/answer.ts";
import { captureStream } from "../upstream/capture.ts";
import type { Capture, Captured } from "../upstream/capture.ts";
import { isTimeout } from "../upstream/errors.ts";
import { createFramer, eventData } from "../upstream/sse.ts";
import { brokenStream } from "./wire.ts";

export interface Ended {
  captured: Captured;
  /** The client left before the end. */
  left: boolean;
  /** The provider cut the stream or let it stall. */
  cut: boolean;
}

/** Chunks that wait for a slow client before the provider has to wait as well. */
const QUEUED = 16;

/** A stream of events. `dropUsage`: the usage chunk was asked for by us and is not the client's. */
export function teeEvents(
  wire: Wire,
  answer: Answer,
  options: { dropUsage: boolean; firstByte(): void; ended(result: Ended): void },
): ReadableStream<Uint8Array> {
  const capture = behind(() => captureStream(wire));
  const framer = createFramer(
    (chunk) => (options.dropUsage && chunk.includes('"prompt_tokens"')) || chunk.includes("data: :"),
    (event) => (options.dropUsage && isUsageChunk(event)) || isCommentAsData(event),
  );
  let started = false;
  let over = false;

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const give = (bytes: Uint8Array) => {
          if (bytes.length > 0) controller.enqueue(bytes);
        };
        const close = (result: Omit<Ended, "captured">, captured: Captured) => {
          over = true;
          controller.close();
          options.ended({ ...result, captured });
        };
        answer.follow({
          data(chunk) {
            if (over) return;
            if (!started) {
              started = true;
              options.firstByte();
            }
            give(framer.push(chunk));
            capture.push(chunk);
            if ((controller.desiredSize ?? 1) <= 0) answer.pause();
          },
          end() {
            if (over) return;
            const captured = capture.finish();
            const whole = captured.terminated || (wire === "chat" && captured.complete);
            if (!whole && !captured.failed) {
              broken(
                controller,
                new AppError("upstream_failed", "The provider ended the stream before the reply was whole."),
                captured,
              );
              close({ left: false, cut: true }, captured);
              return;
            }
            give(framer.rest());
            // Clients wait for the terminator of their format even where the provider leaves it out.
            if (wire === "chat" && !captured.terminated)
              give(Buffer.from(`${framer.inside() ? "\n\n" : ""}data: [DONE]\n\n`));
            close({ left: false, cut: false }, captured);
          },
          fail(error) {
            if (over) return;
            const captured = capture.finish();
            if (error.kind === "aborted") {
              over = true;
              controller.error(error);
              options.ended({ captured: { ...captured, complete: false }, left: true, cut: false });
              return;
            }
            // What broke after the terminator broke nothing.
            const whole = captured.terminated || (wire === "chat" && captured.complete);
            if (!whole) {
              broken(
                controller,
                new AppError(isTimeout(error.kind) ? "upstream_timeout" : "upstream_failed", error.message),
                captured,
              );
            } else if (wire === "chat" && !captured.terminated) give(Buffer.from("data: [DONE]\n\n"));
            close({ left: false, cut: !whole }, captured);
          },
        });
      },
      pull() {
        answer.resume();
      },
      cancel() {
        if (over) return;
        over = true;
        answer.abort();
        options.ended({ captured: { ...capture.finish(), complete: false }, left: true, cut: false });
      },
    },
    { highWaterMark: QUEUED },
  );

  function broken(
    controller: ReadableStreamDefaultController<Uint8Array>,
    error: AppError,
    captured: Captured,
  ): void {
    // The beginning of an event that will never end is not sent; one that was begun is closed first.
    framer.rest();
    controller.enqueue(
      Buffer.from((framer.inside() ? "\n\n" : "") + brokenStream(wire, error, captured.responseId)),
    );
  }
}

/** Nobody asks for the words before the end: so many chunks or bytes are read together. */
const UNREAD_CHUNKS = 16;
const UNREAD_BYTES = 16 * 1024;

/** A capture that reads in a later turn of the loop, when the client's bytes have gone out. */
function behind(make: () => Capture): Capture {
  let capture: Capture | null = null;
  let unread: Buffer[] = [];
  let size = 0;
  const read = () => {
    capture ??= make();
    for (const chunk of unread) capture.push(chunk);
    unread = [];
    size = 0;
    return capture;
  };
  return {
    push(chunk) {
      const due = unread.length >= UNREAD_CHUNKS || size >= UNREAD_BYTES;
      unread.push(chunk);
      size += chunk.length;
      if (!due && (unread.length >= UNREAD_CHUNKS || size >= UNREAD_BYTES)) setImmediate(read);
    },
    finish: () => read().finish(),
  };
}

function isUsageChunk(event: Buffer): boolean {
  try {
    const data = JSON.parse(eventData(event)) as { choices?: unknown; usage?: unknown };
    return Array.isArray(data.choices) && data.choices.length === 0 && data.usage != null;
  } catch {
    return false;
  }
}

function isCommentAsData(event: Buffer): boolean {
  return eventData(event).startsWith(":");
}

/** Any other body, followed without being read; `ended` hears whether it was whole. */
export function teeBytes(
  answer: Answer,
  first: Buffer,
  options: { data?(chunk: Buffer): void; ended(result: { left: boolean; cut: boolean }): void },
): ReadableStream<Uint8Array> {
  let over = false;
  const end = (result: { left: boolean; cut: boolean }) => {
    over = true;
    options.ended(result);
  };
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (first.length > 0) controller.enqueue(first);
        answer.follow({
          data(chunk) {
            if (over) return;
            controller.enqueue(chunk);
            options.data?.(chunk);
            if ((controller.desiredSize ?? 1) <= 0) answer.pause();
          },
          end() {
            if (over) return;
            controller.close();
            end({ left: false, cut: false });
          },
          fail(error) {
            if (over) return;
            // The connection to the client breaks as the provider's did: the length or the last chunk is missing.
            controller.error(error);
            end({ left: error.kind === "aborted", cut: error.kind !== "aborted" });
          },
        });
      },
      pull() {
        answer.resume();
      },
      cancel() {
        if (over) return;
        answer.abort();
        end({ left: true, cut: false });
      },
    },
    { highWaterMark: QUEUED },
  );
}
