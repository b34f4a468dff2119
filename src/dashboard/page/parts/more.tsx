interface MoreProps {
  isLoading: boolean;
  onClick: () => void;
  children: string;
}

/** The button below a list that has more entries. */
export function More({ isLoading, onClick, children }: MoreProps) {
  return (
    <div class="row">
      <button type="button" disabled={isLoading} onClick={onClick}>
        {isLoading ? 'Looking…' : children}
      </button>
    </div>
  );
}
