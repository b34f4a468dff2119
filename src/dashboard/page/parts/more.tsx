interface MoreProps {
  isLooking: boolean;
  onClick: () => void;
  children: string;
}

/** Below a list that goes on. */
export function More({ isLooking, onClick, children }: MoreProps) {
  return (
    <div class="row">
      <button type="button" disabled={isLooking} onClick={onClick}>
        {isLooking ? 'Looking…' : children}
      </button>
    </div>
  );
}
