/** A value of the model as SQLite keeps it: an absent field is NULL, a boolean is 0 or 1, a list or an object is JSON. */
export type RowOf<Model> = {
  [Name in keyof Model]-?: undefined extends Model[Name]
    ? Column<NonNullable<Model[Name]>> | null
    : Column<Model[Name]>;
};

type Column<Value> = Value extends boolean ? number : Value extends object ? string : Value;

/** A row as the model has it: a column that is NULL becomes an absent field. */
export type Present<Row> = {
  [Name in keyof Row as null extends Row[Name] ? never : Name]: Row[Name];
} & {
  [Name in keyof Row as null extends Row[Name] ? Name : never]?: NonNullable<Row[Name]>;
};

export function withoutNulls<Row extends object>(row: Row): Present<Row> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Present<Row>;
}
