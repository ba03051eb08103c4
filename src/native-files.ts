/**
 * The native libraries inside this executable. Run from source there are none, and node_modules is used instead;
 * build.ts puts the list of the target platform in the place of this module.
 */

export interface NativeFile {
  readonly library: "sqlite-vec" | "onnxruntime";
  /** File name the loader expects, such as `vec0.so`. */
  readonly name: string;
  /** Where the bytes can be read, zstd-compressed. */
  readonly source: string;
  /** Of the uncompressed bytes. */
  readonly sha256: string;
}

export interface NativeBundle {
  /** Such as `linux-x64` or `linux-x64-musl`. */
  readonly target: string;
  readonly files: readonly NativeFile[];
}

export const nativeBundle: NativeBundle | null = null;
