/** Writes safetensors files, the way model2vec does, for tests. */

type Numbers = Float32Array | Float16Array | Float64Array | Int8Array | Int32Array | BigInt64Array;

const TYPES: Record<string, string> = {
  Float32Array: "F32",
  Float16Array: "F16",
  Float64Array: "F64",
  Int8Array: "I8",
  Int32Array: "I32",
  BigInt64Array: "I64",
};

export function safetensors(
  tensors: Record<string, { shape: number[]; data: Numbers }>,
  padding = 8,
): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  let at = 0;
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype: TYPES[data.constructor.name], shape, data_offsets: [at, at + data.byteLength] };
    at += data.byteLength;
  }
  let json = JSON.stringify(header);
  while ((json.length + 8) % padding !== 0) json += " ";
  const file = new Uint8Array(8 + json.length + at);
  new DataView(file.buffer).setBigUint64(0, BigInt(json.length), true);
  file.set(new TextEncoder().encode(json), 8);
  at = 8 + json.length;
  for (const { data } of Object.values(tensors)) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return file;
}

/** A tokenizer.json of BERT type over a few whole words; id 0 is unknown. */
export function wordTokenizer(words: readonly string[]): unknown {
  const vocab = Object.fromEntries(["[UNK]", ...words].map((word, id) => [word, id]));
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: [{ id: 0, special: true, content: "[UNK]", single_word: false, lstrip: false, rstrip: false, normalized: false }],
    normalizer: { type: "BertNormalizer", clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: null,
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: { type: "WordPiece", unk_token: "[UNK]", continuing_subword_prefix: "##", max_input_chars_per_word: 100, vocab },
  }; // prettier-ignore
}

export function cosine(a: Float32Array | undefined, b: Float32Array | undefined): number {
  if (a === undefined || b === undefined || a.length !== b.length) return Number.NaN;
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at]! * b[at]!;
  return sum;
}
