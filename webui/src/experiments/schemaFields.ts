/** The fields of a spec that have a plain value, from its JSON Schema: dotted, with what the schema says of them. */

export interface SchemaField {
  field: string;
  /** In words: `integer, at least 1`; `one of: poisson, burst`. */
  kind: string;
  description: string;
  choices: readonly string[];
}

interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  description?: string;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
}

/** References and alternatives count, too. */
const DEEPEST = 20;
/** Chosen elsewhere in the form, or no plain value. */
const LEFT_OUT = new Set(["schemes", "repeats", "seed", "claims", "sweep", "name", "title", "description"]);

export function schemaFields(root: unknown): SchemaField[] {
  const known = new Map<string, SchemaField>();
  walk(root as Schema, root as Schema, "", 0, known);
  return [...known.values()].filter((field) => !LEFT_OUT.has(field.field.split(".")[0] ?? ""));
}

function walk(
  schema: Schema,
  root: Schema,
  field: string,
  depth: number,
  known: Map<string, SchemaField>,
): void {
  if (depth > DEEPEST) return;
  if (schema.$ref !== undefined) {
    const target = schema.$ref
      .replace(/^#\//, "")
      .split("/")
      .reduce<unknown>((node, name) => (node as Record<string, unknown> | undefined)?.[name], root);
    if (target) walk({ ...(target as Schema), ...without(schema) }, root, field, depth + 1, known);
    return;
  }
  for (const part of [...(schema.oneOf ?? []), ...(schema.anyOf ?? []), ...(schema.allOf ?? [])]) {
    walk({ ...without(schema), ...part }, root, field, depth + 1, known);
  }
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    walk(inner, root, field ? `${field}.${name}` : name, depth + 1, known);
  }
  if (field !== "" && !schema.properties && isPlain(schema)) note(schema, field, known);
}

function without(schema: Schema): Schema {
  const { $ref, oneOf, anyOf, allOf, properties, ...rest } = schema;
  return rest;
}

function isPlain(schema: Schema): boolean {
  const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
  const plain = types.some((type) => ["integer", "number", "string", "boolean"].includes(type));
  return plain || schema.enum !== undefined || schema.const !== undefined;
}

function note(schema: Schema, field: string, known: Map<string, SchemaField>): void {
  const choices = (schema.enum ?? (schema.const === undefined ? [] : [schema.const])).map(String);
  const before = known.get(field);
  const all = [...new Set([...(before?.choices ?? []), ...choices])];
  const limits = [
    schema.minimum !== undefined && `at least ${schema.minimum}`,
    schema.exclusiveMinimum !== undefined && `above ${schema.exclusiveMinimum}`,
    schema.maximum !== undefined && `at most ${schema.maximum}`,
  ].filter(Boolean);
  const type = typeof schema.type === "string" ? schema.type : (schema.type ?? []).join(" or ");
  known.set(field, {
    field,
    kind: all.length > 0 ? `one of: ${all.join(", ")}` : [type, ...limits].join(", "),
    description: schema.description ?? before?.description ?? "",
    choices: all,
  });
}
