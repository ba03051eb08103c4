/** Files imported by their path (`with { type: "file" }`). */
declare module "*.wasm" {
  const path: string;
  export default path;
}
