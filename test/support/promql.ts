import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';
import type { Sample } from './scrape.ts';

export interface Scrape {
  /** Epoch milliseconds. */
  at: number;
  samples: Sample[];
}

type Value = Array<{ labels: Record<string, string>; value: number }> | number;

/** Returns the labels of each series for which an alert with this expression is pending or firing at a scrape. */
export function firing(expr: string, scrape: Scrape): Array<Record<string, string>> {
  const root = parser.parse(expr).topNode.firstChild;
  if (root === null) throw new Error(`no expression: ${expr}`);
  const result = new Evaluation(expr, scrape).of(root);
  if (typeof result === 'number') throw new Error(`not a vector: ${expr}`);
  return result.map(({ labels }) => labels);
}

const operators: Record<string, (left: number, right: number) => number> = {
  Add: (left, right) => left + right,
  Sub: (left, right) => left - right,
  Mul: (left, right) => left * right,
  Div: (left, right) => left / right,
};

const comparisons: Record<string, (left: number, right: number) => boolean> = {
  Eql: (left, right) => left === right,
  Neq: (left, right) => left !== right,
  Gtr: (left, right) => left > right,
  Gte: (left, right) => left >= right,
  Lss: (left, right) => left < right,
  Lte: (left, right) => left <= right,
};

const matches: Record<string, (value: string, wanted: string) => boolean> = {
  EqlSingle: (value, wanted) => value === wanted,
  Neq: (value, wanted) => value !== wanted,
  EqlRegex: (value, wanted) => new RegExp(`^(?:${wanted})$`).test(value),
  NeqRegex: (value, wanted) => !new RegExp(`^(?:${wanted})$`).test(value),
};

const aggregations: Record<string, (values: number[]) => number> = {
  Max: (values) => Math.max(...values),
  Min: (values) => Math.min(...values),
  Sum: (values) => values.reduce((sum, value) => sum + value, 0),
};

/** Evaluates the part of PromQL that the alerts use, and throws for anything else. */
class Evaluation {
  readonly #expr: string;
  readonly #scrape: Scrape;

  constructor(expr: string, scrape: Scrape) {
    this.#expr = expr;
    this.#scrape = scrape;
  }

  of(node: SyntaxNode): Value {
    switch (node.name) {
      case 'NumberDurationLiteral':
        return Number(this.#text(node));
      case 'ParenExpr':
        return this.of(childrenOf(node)[0] ?? unknown(node));
      case 'FunctionCall':
        return this.#text(node) === 'time()' ? this.#scrape.at / 1000 : unknown(node);
      case 'VectorSelector':
        return this.#select(node);
      case 'AggregateExpr':
        return this.#aggregate(node);
      case 'BinaryExpr':
        return this.#combine(node);
      default:
        return unknown(node);
    }
  }

  #select(node: SyntaxNode): Value {
    const name = this.#text(node.getChild('Identifier') ?? unknown(node));
    const matchers = (node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []).map((matcher) => {
      const [label = unknown(matcher), operator = unknown(matcher), wanted = unknown(matcher)] = childrenOf(matcher);
      const isMatch = matches[operator.firstChild?.name ?? ''] ?? unknown(operator);
      return (labels: Record<string, string>) =>
        isMatch(labels[this.#text(label)] ?? '', this.#text(wanted).slice(1, -1));
    });
    return this.#scrape.samples.filter(
      (sample) => sample.name === name && matchers.every((isMatch) => isMatch(sample.labels)),
    );
  }

  #aggregate(node: SyntaxNode): Value {
    const operator = node.getChild('AggregateOp')?.firstChild?.name ?? '';
    const aggregate = aggregations[operator] ?? unknown(node);
    const by = node.getChild('AggregateModifier')?.getChild('GroupingLabels')?.getChildren('LabelName') ?? [];
    const names = by.map((label) => this.#text(label));
    const values = this.of(node.getChild('FunctionCallBody')?.firstChild ?? unknown(node));
    if (typeof values === 'number') return unknown(node);
    const groups = Object.groupBy(values, ({ labels }) =>
      JSON.stringify(names.map((name) => [name, labels[name] ?? ''])),
    );
    return Object.entries(groups).map(([group, members = []]) => ({
      labels: Object.fromEntries(JSON.parse(group) as Array<[string, string]>),
      value: aggregate(members.map(({ value }) => value)),
    }));
  }

  #combine(node: SyntaxNode): Value {
    const [first = unknown(node), operator = unknown(node), second = unknown(node)] = childrenOf(node);
    const [left, right] = [this.of(first), this.of(second)];
    if (operator.name === 'Or') {
      if (typeof left === 'number' || typeof right === 'number') return unknown(node);
      const known = new Set(left.map(({ labels }) => JSON.stringify(labels)));
      return [...left, ...right.filter(({ labels }) => !known.has(JSON.stringify(labels)))];
    }
    if (typeof right !== 'number') return unknown(second);
    const compare = comparisons[operator.name];
    if (compare !== undefined)
      return typeof left === 'number' ? unknown(first) : left.filter(({ value }) => compare(value, right));
    const calculate = operators[operator.name] ?? unknown(operator);
    if (typeof left === 'number') return calculate(left, right);
    return left.map(({ labels, value }) => ({ labels, value: calculate(value, right) }));
  }

  #text({ from, to }: SyntaxNode): string {
    return this.#expr.slice(from, to);
  }
}

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child);
  return children;
}

function unknown(node: SyntaxNode): never {
  throw new Error(`test/support/promql.ts can't evaluate ${node.name} at ${node.from}`);
}
