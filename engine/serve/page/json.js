// JSON with whole numbers of any size: a seed has up to 64 bits, of which a number here keeps 53.
// Larger ones are of type BigInt. Browsers that cannot do it round them, as they always did.

export function parseJson(text) {
  return JSON.parse(text, (key, value, context) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    return context && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
  });
}

export function writeJson(value) {
  return JSON.stringify(value, (key, part) => {
    if (typeof part !== 'bigint') return part;
    return JSON.rawJSON ? JSON.rawJSON(part.toString()) : Number(part);
  });
}
