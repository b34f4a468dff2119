/** A value of the model as SQLite keeps it: an absent field is NULL, a boolean is 0 or 1, a list or an object is JSON. */
export type RowOf<Model> = {
  [Name in keyof Model]-?: undefined extends Model[Name]
    ? Column<NonNullable<Model[Name]>> | null
    : Column<Model[Name]>;
};

type Column<Value> = Value extends boolean ? number : Value extends object ? string : Value;
