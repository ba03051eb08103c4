/**
 * The part of the safetensors format that model2vec tables use: eight bytes of header length (little endian), a JSON
 * header, then the tensors. https://huggingface.co/docs/safetensors/index#format
 */

export type TensorType = "F32" | "F16" | "F64" | "I8" | "I32" | "I64";

export interface Tensor {
  readonly type: TensorType;
  readonly shape: readonly number[];
  /** A view into the file's buffer, not a copy. */
  readonly bytes: Uint8Array;
}

const WIDTH: Record<TensorType, number> = { F64: 8, I64: 8, F32: 4, I32: 4, F16: 2, I8: 1 };

/** The named tensors of a file. Throws one sentence when the file is cut off, inconsistent or of another type. */
export function parseSafetensors(file: Uint8Array, names: readonly string[]): Map<string, Tensor> {
  if (file.byteLength < 8) throw new Error("the file is cut off");
  const length = new DataView(file.buffer, file.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(file.byteLength - 8)) throw new Error("the file is cut off or no safetensors file");
  const start = 8 + Number(length);
  const header = parseHeader(file.subarray(8, start));
  const tensors = new Map<string, Tensor>();
  for (const name of names) {
    const entry = header[name];
    if (entry !== undefined) tensors.set(name, tensor(name, entry, file, start));
  }
  return tensors;
}

function parseHeader(bytes: Uint8Array): Record<string, unknown> {
  try {
    const header: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (isObject(header)) return header;
  } catch {
    // Said below.
  }
  throw new Error("the header of the file is damaged");
}

function tensor(name: string, entry: unknown, file: Uint8Array, start: number): Tensor {
  if (!isObject(entry)) throw new Error(`tensor ${name} is damaged`);
  const type = entry["dtype"];
  const shape = entry["shape"];
  const offsets = entry["data_offsets"];
  if (typeof type !== "string" || !(type in WIDTH))
    throw new Error(`tensor ${name} has type ${String(type)}`);
  if (!isCounts(shape) || !isCounts(offsets) || offsets.length !== 2)
    throw new Error(`tensor ${name} is damaged`);
  const [from = 0, to = 0] = offsets;
  const bytes = shape.reduce((product, size) => product * size, WIDTH[type as TensorType]);
  if (to - from !== bytes)
    throw new Error(`tensor ${name} has ${to - from} bytes where its shape needs ${bytes}`);
  if (start + to > file.byteLength) throw new Error("the file is cut off");
  return { type: type as TensorType, shape, bytes: file.subarray(start + from, start + to) };
}

/** Numbers of a tensor as 32-bit floats: a view where type and alignment allow, so that a table is not held twice. */
export function toFloat32(tensor: Tensor): Float32Array {
  const { bytes, type } = tensor;
  const count = bytes.byteLength / WIDTH[type];
  if (type === "F32") return new Float32Array(aligned(bytes, 4), byteOffset(bytes, 4), count);
  if (type === "F64")
    return Float32Array.from(new Float64Array(aligned(bytes, 8), byteOffset(bytes, 8), count));
  if (type === "F16")
    return Float32Array.from(new Float16Array(aligned(bytes, 2), byteOffset(bytes, 2), count));
  return Float32Array.from(toIntegers(tensor));
}

/** Numbers of an integer tensor. Throws for other types. */
export function toIntegers(tensor: Tensor): Int8Array | Int32Array {
  const { bytes, type } = tensor;
  if (type === "I8") return new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = bytes.byteLength / WIDTH[type];
  if (type === "I32") return new Int32Array(aligned(bytes, 4), byteOffset(bytes, 4), count);
  if (type !== "I64") throw new Error(`integers expected, ${type} found`);
  return Int32Array.from(new BigInt64Array(aligned(bytes, 8), byteOffset(bytes, 8), count), Number);
}

function aligned(bytes: Uint8Array, width: number): ArrayBuffer {
  const buffer = bytes.byteOffset % width === 0 ? bytes.buffer : new Uint8Array(bytes).buffer;
  return buffer as ArrayBuffer;
}

function byteOffset(bytes: Uint8Array, width: number): number {
  return bytes.byteOffset % width === 0 ? bytes.byteOffset : 0;
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
