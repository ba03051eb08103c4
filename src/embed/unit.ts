/** Scales a vector to length 1 in place; a zero vector stays zero. */
export function unit(vector: Float32Array): Float32Array {
  let square = 0;
  for (let at = 0; at < vector.length; at++) square += vector[at]! * vector[at]!;
  if (square === 0) return vector;
  const scale = 1 / Math.sqrt(square);
  for (let at = 0; at < vector.length; at++) vector[at] = vector[at]! * scale;
  return vector;
}
