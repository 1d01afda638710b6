// An item of a list is dragged by its handle, with mouse, pen or finger. The others make room; the
// item itself stays where it is in the list until it is let go, so that it keeps the pointer.

let dragged = null;
export const isDragging = () => dragged !== null;

function neighbours(element) {
  return {before: element.previousElementSibling, behind: element.nextElementSibling};
}

const middleOf = (element) => {
  const {top, height} = element.getBoundingClientRect();
  return top + height / 2;
};

// `dropped(id)` is called with the id of the item that it stands before now, "" for none; not when
// it was put back.
export function startDrag(handle, element, dropped) {
  let startY = 0, startNext = null, offset = 0;
  const place = (y) => {
    offset = y - startY;
    element.style.transform = `translateY(${offset}px)`;
  };
  // Where the item would be without the pointer changes with each neighbour that moves past it.
  const pass = (sibling, isUp, y) => {
    const old = element.getBoundingClientRect().top;
    if (isUp) element.after(sibling);
    else element.before(sibling);
    startY += element.getBoundingClientRect().top - old;
    place(y);
  };
  const move = ({clientY: y}) => {
    place(y);
    for (let {before} = neighbours(element); before && middleOf(element) < middleOf(before); ({before} = neighbours(element)))
      pass(before, true, y);
    for (let {behind} = neighbours(element); behind && middleOf(element) > middleOf(behind); ({behind} = neighbours(element)))
      pass(behind, false, y);
  };
  const end = (isDropped) => {
    if (dragged !== element) return;
    dragged = null;
    handle.removeEventListener('pointermove', move);
    element.classList.remove('dragged');
    element.style.transform = '';
    const next = element.nextElementSibling;
    if (isDropped && next !== startNext) dropped(next?.dataset.id ?? '');
  };
  handle.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || dragged) return;
    dragged = element;
    startY = event.clientY;
    startNext = element.nextElementSibling;
    element.classList.add('dragged');
    handle.setPointerCapture(event.pointerId);
    handle.addEventListener('pointermove', move);
  });
  handle.addEventListener('pointerup', () => end(true));
  handle.addEventListener('pointercancel', () => end(false));
  handle.addEventListener('lostpointercapture', () => end(false));
}
