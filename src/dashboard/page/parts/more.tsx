interface MoreProps {
  isLooking: boolean;
  onClick: () => void;
  children: string;
}

/** The button below a list that has more entries. */
export function More({ isLooking, onClick, children }: MoreProps) {
  return (
    <div class="row">
      <button type="button" disabled={isLooking} onClick={onClick}>
        {isLooking ? 'Looking…' : children}
      </button>
    </div>
  );
}
